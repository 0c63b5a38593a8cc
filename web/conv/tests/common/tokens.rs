//! Attention over a row of pixels, as exporters write it.

use isovec_model::onnx::builder::{int, ints};
use isovec_test_models::convolutions::Net;

/// A picture as a row of tokens, and what exporters make of attention over them.
pub(crate) struct Tokens {
    pub(crate) net: Net,
    pub(crate) x: String,
    width: usize,
}

pub(crate) const TOKENS: usize = 7;

impl Tokens {
    /// Tokens `[pictures, tokens, width]`.
    pub(crate) fn new(seed: u64, width: usize) -> Self {
        let mut net = Net::new(seed, [3, 2, TOKENS]);
        let x = net.conv("x", [width, 3, 2, 1], true, vec![]);
        let shape = net.ints(&[0, width as i64, -1]);
        let x = net.node("Reshape", &[&x, &shape], vec![]);
        let x = net.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 1])]);
        Self { net, x, width }
    }

    pub(crate) fn linear(&mut self, x: &str, shape: [usize; 2]) -> String {
        let weight = self.net.weight(&shape, 0.0, 0.3);
        let bias = self.net.weight(&[shape[1]], 0.0, 0.3);
        let product = self.net.node("MatMul", &[x, &weight], vec![]);
        self.net.node("Add", &[&product, &bias], vec![])
    }

    /// A layer normalisation of simple operators.
    pub(crate) fn norm(&mut self, x: &str, squared: bool) -> String {
        let mean = vec![ints("axes", &[-1]), int("keepdims", 1)];
        let net = &mut self.net;
        let center = net.node("ReduceMean", &[x], mean.clone());
        let centred = net.node("Sub", &[x, &center], vec![]);
        let squares = match squared {
            true => net.node("Mul", &[&centred, &centred], vec![]),
            false => {
                let two = net.number(2.0);
                net.node("Pow", &[&centred, &two], vec![])
            }
        };
        let variance = net.node("ReduceMean", &[&squares], mean);
        let epsilon = net.number(0.3);
        let variance = net.node("Add", &[&variance, &epsilon], vec![]);
        let deviation = net.node("Sqrt", &[&variance], vec![]);
        let normed = net.node("Div", &[&centred, &deviation], vec![]);
        let gamma = net.weight(&[self.width], 1.0, 0.3);
        let beta = net.weight(&[self.width], 0.0, 0.3);
        let scaled = net.node("Mul", &[&normed, &gamma], vec![]);
        net.node("Add", &[&scaled, &beta], vec![])
    }

    /// Queries, keys and values of one product, `heads` of each.
    pub(crate) fn joined(&mut self, x: &str, heads: usize, gathered: bool) -> String {
        let (width, size) = (self.width, self.width / heads);
        let all = self.linear(x, [width, 3 * width]);
        let net = &mut self.net;
        let shape = net.ints(&[0, TOKENS as i64, 3, heads as i64, size as i64]);
        let all = net.node("Reshape", &[&all, &shape], vec![]);
        let all = net.node("Transpose", &[&all], vec![ints("perm", &[2, 0, 3, 1, 4])]);
        let [q, k, v] = [0, 1, 2].map(|part| match gathered {
            true => {
                let part = net.int(part - 3);
                net.node("Gather", &[&all, &part], vec![int("axis", 0)])
            }
            false => {
                let [start, end, axis] = [part, part + 1, 0].map(|at| net.ints(&[at]));
                let part = net.node("Slice", &[&all, &start, &end, &axis], vec![]);
                let axes = net.ints(&[0]);
                net.node("Squeeze", &[&part, &axes], vec![])
            }
        });
        let factor = net.number(0.4);
        let q = net.node("Mul", &[&q, &factor], vec![]);
        let k = net.node("Transpose", &[&k], vec![ints("perm", &[0, 1, 3, 2])]);
        self.attended([&q, &k, &v])
    }

    /// Queries, keys and values of three products.
    pub(crate) fn apart(&mut self, x: &str, heads: usize) -> String {
        let (width, size) = (self.width, self.width / heads);
        let parts = [[0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]].map(|order| {
            let part = self.linear(x, [width, width]);
            let shape = self.net.ints(&[0, -1, heads as i64, size as i64]);
            let part = self.net.node("Reshape", &[&part, &shape], vec![]);
            self.net
                .node("Transpose", &[&part], vec![ints("perm", &order)])
        });
        self.attended([&parts[0], &parts[1], &parts[2]])
    }

    fn attended(&mut self, [q, k, v]: [&str; 3]) -> String {
        let net = &mut self.net;
        let scores = net.node("MatMul", &[q, k], vec![]);
        let by = net.number(3.0);
        let scores = net.node("Div", &[&scores, &by], vec![]);
        let weights = net.node("Softmax", &[&scores], vec![int("axis", 3)]);
        let context = net.node("MatMul", &[&weights, v], vec![]);
        let context = net.node("Transpose", &[&context], vec![ints("perm", &[0, 2, 1, 3])]);
        let shape = net.ints(&[0, TOKENS as i64, self.width as i64]);
        net.node("Reshape", &[&context, &shape], vec![])
    }
}
