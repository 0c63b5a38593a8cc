//! hOCR 1.2 (kba.github.io/hocr-spec/1.2): text with boxes, as an XHTML page.

use super::{PictureText, TextLine};

/// Writes the text of pictures as one document in hOCR 1.2, a page for each: its file's name, its size, and a level box around each
/// line with its score in percent (`x_wconf`).
pub fn hocr<'a>(pages: impl IntoIterator<Item = (&'a str, &'a PictureText)>) -> String {
    let mut document = String::from(HEAD);
    let mut lines = 0;
    for (place, (name, page)) in pages.into_iter().enumerate() {
        let (width, height) = (page.width, page.height);
        // A file's name stands in quotes within the title.
        let name = name.replace(['"', '\\'], "_");
        let title = escaped(&format!(
            "image \"{name}\"; bbox 0 0 {width} {height}; ppageno {place}"
        ));
        let number = place + 1;
        document += &format!("<div class=\"ocr_page\" id=\"page_{number}\" title=\"{title}\">\n");
        for line in &page.lines {
            lines += 1;
            document += &line_span(line, lines);
        }
        document += "</div>\n";
    }
    document + "</body>\n</html>\n"
}

const HEAD: &str = concat!(
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
    "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\" \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n",
    "<html xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<title></title>\n",
    "<meta http-equiv=\"Content-Type\" content=\"text/html;charset=utf-8\"/>\n",
    "<meta name=\"ocr-system\" content=\"isovec ",
    env!("CARGO_PKG_VERSION"),
    "\"/>\n<meta name=\"ocr-capabilities\" content=\"ocr_page ocr_line ocrp_wconf\"/>\n</head>\n<body>\n",
);

/// A line with the level box around its corners.
fn line_span(line: &TextLine, number: usize) -> String {
    let ends = |axis: usize| {
        let along = line.corners.iter().map(|corner| corner[axis]);
        let low = along.clone().fold(f32::INFINITY, f32::min);
        let high = along.fold(f32::NEG_INFINITY, f32::max);
        (low.floor(), high.ceil())
    };
    let ((left, right), (top, bottom)) = (ends(0), ends(1));
    let sure = (line.score * 100.0).round();
    let text = escaped(&line.text);
    format!(
        "<span class=\"ocr_line\" id=\"line_{number}\" title=\"bbox {left} {top} {right} {bottom}; x_wconf {sure}\">{text}</span>\n"
    )
}

/// For XML: markup as entities, and characters that no XML document may hold as spaces.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            control if control < ' ' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_lines_and_no_markup_of_strangers() {
        let text = PictureText {
            width: 200,
            height: 100,
            lines: vec![TextLine {
                text: "a < b & \u{1}'c'".into(),
                score: 0.987,
                corners: [[10.5, 9.0], [99.0, 12.25], [98.0, 30.0], [9.0, 27.0]],
            }],
        };
        let page = hocr([("a\"b<c>.png", &text), ("b", &text)]);
        assert!(
            page.contains(
                "title=\"image &quot;a_b&lt;c&gt;.png&quot;; bbox 0 0 200 100; ppageno 0\""
            ),
            "{page}"
        );
        let line = "title=\"bbox 9 9 99 30; x_wconf 99\">a &lt; b &amp;  &#39;c&#39;</span>";
        assert!(page.contains(line), "{page}");
        assert!(
            page.contains("id=\"line_2\"") && page.contains("ppageno 1"),
            "{page}"
        );
        assert!(page.ends_with("</html>\n"));
    }

    #[test]
    fn a_page_without_text_is_a_page() {
        let text = PictureText {
            width: 1,
            height: 1,
            lines: Vec::new(),
        };
        assert!(hocr([("x", &text)]).contains("id=\"page_1\""));
        assert_eq!(text.plain(), "");
    }
}
