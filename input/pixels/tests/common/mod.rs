//! What the tests share. They run natively and in browsers.
#![allow(dead_code, reason = "each test takes its part")]

/// A test that runs natively and in a browser.
macro_rules! test_everywhere {
    (fn $name:ident() $body:block) => {
        #[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
        #[cfg_attr(not(target_arch = "wasm32"), test)]
        fn $name() $body
    };
}
pub(crate) use test_everywhere;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

/// Numbers that depend on the seed alone: Marsaglia's xorshift64, its upper bits.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }

    /// Bytes of which many are 0 or 255.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut byte = || match self.below(4) {
            0 => 0,
            1 => 255,
            _ => self.below(256) as u8,
        };
        (0..count).map(|_| byte()).collect()
    }
}
