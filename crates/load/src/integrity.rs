//! The template of YCSB's option `dataintegrity`.

use crate::java;

/// Writes YCSB's `dataintegrity` value of a field: `key:field`, followed by repetitions of `:` and the
/// `String.hashCode` of the text so far, truncated to the length of `out`.
pub fn fill_integrity(out: &mut [u8], key: &[u8], field: &[u8]) {
    let mut text = Template { out, at: 0, hash: 0 };
    // Keys are ASCII. A field name with other characters is hashed by UTF-16 units, as in Java.
    text.push_bytes(key);
    text.push_bytes(b":");
    match std::str::from_utf8(field) {
        Ok(name) if !name.is_ascii() => text.push_unicode(name),
        _ => text.push_bytes(field),
    }
    while text.at < text.out.len() {
        text.push_bytes(b":");
        text.push_bytes(itoa::Buffer::new().format(text.hash).as_bytes());
    }
}

struct Template<'a> {
    out: &'a mut [u8],
    at: usize,
    hash: i32,
}

impl Template<'_> {
    fn copy_bytes(&mut self, bytes: &[u8]) {
        let take = bytes.len().min(self.out.len() - self.at);
        self.out[self.at..self.at + take].copy_from_slice(&bytes[..take]);
        self.at += take;
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        self.hash = java::hash_ascii(self.hash, bytes);
        self.copy_bytes(bytes);
    }

    fn push_unicode(&mut self, text: &str) {
        self.hash = text.encode_utf16().fold(self.hash, |h, unit| h.wrapping_mul(31).wrapping_add(i32::from(unit)));
        self.copy_bytes(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_template(key: &str, field: &str, len: usize) -> String {
        let mut out = vec![0; len];
        fill_integrity(&mut out, key.as_bytes(), field.as_bytes());
        String::from_utf8(out).unwrap()
    }

    /// Compares values with values written by YCSB 0.17.0.
    #[test]
    fn integrity_values_are_ycsbs() {
        assert_eq!(
            render_template("user6284781860667377211", "field0", 100),
            "user6284781860667377211:field0:-56807877:2032869390:-165488160:1762371712:-169193395:-1039977118:-10"
        );
        assert_eq!(
            render_template("user6284781860667377211", "field9", 50),
            "user6284781860667377211:field9:-56807598:-11004408"
        );
        assert_eq!(render_template("user1", "field3", 16), "user1:field3:-12");
        assert_eq!(render_template("user0", "field0", 10), "user0:fiel");
    }
}
