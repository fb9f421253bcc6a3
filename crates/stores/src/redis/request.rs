//! Commands in Redis's protocol (RESP 2), written one after the other to a reused buffer.

use loadstone_load::Row;
use loadstone_load::java::{hash_ascii, string_hash};

/// The sorted set of all keys, with the name that YCSB's binding uses.
pub const INDEX: &[u8] = b"_indices";

/// Commands that are sent together.
#[derive(Debug, Default)]
pub struct Request {
    bytes: Vec<u8>,
    commands: usize,
}

impl Request {
    /// Removes the commands but keeps the buffer.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.commands = 0;
    }

    /// The bytes to send.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of replies to expect.
    #[inline]
    pub fn commands(&self) -> usize {
        self.commands
    }

    /// Appends a command with these arguments.
    pub fn command(&mut self, arguments: &[&[u8]]) {
        self.head(arguments.len());
        for word in arguments {
            self.word(word);
        }
    }

    /// Replaces the commands with ASKING, followed by the commands of another request.
    pub fn ask_before(&mut self, request: &Self) {
        self.clear();
        self.command(&[b"ASKING"]);
        self.bytes.extend_from_slice(&request.bytes);
        self.commands += request.commands;
    }

    /// `HMSET key field value …`
    #[inline]
    pub fn hmset(&mut self, key: &[u8], row: &Row) {
        self.head(2 + 2 * row.fields().count());
        self.word(b"HMSET");
        self.word(key);
        for (name, value) in row.fields().flatten() {
            self.word(name);
            self.word(value);
        }
    }

    /// `HGETALL key`
    #[inline]
    pub fn hgetall(&mut self, key: &[u8]) {
        self.command(&[b"HGETALL", key]);
    }

    /// `HMGET key field …`
    #[inline]
    pub fn hmget<'a>(&mut self, key: &[u8], names: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.head(2 + names.len());
        self.word(b"HMGET");
        self.word(key);
        for name in names {
            self.word(name);
        }
    }

    /// `ZADD _indices hash key`
    #[inline]
    pub fn zadd(&mut self, key: &[u8]) {
        self.head(4);
        self.word(b"ZADD");
        self.word(INDEX);
        self.score(key);
        self.word(key);
    }

    /// `ZRANGEBYSCORE _indices hash +inf LIMIT 0 count`
    #[inline]
    pub fn zrangebyscore(&mut self, key: &[u8], count: usize) {
        self.head(7);
        self.word(b"ZRANGEBYSCORE");
        self.word(INDEX);
        self.score(key);
        self.word(b"+inf");
        self.word(b"LIMIT");
        self.word(b"0");
        self.word(itoa::Buffer::new().format(count).as_bytes());
    }

    /// Writes the score of a key in the index: the key's Java `String.hashCode`, as in YCSB's binding.
    fn score(&mut self, key: &[u8]) {
        let hash = if key.is_ascii() { hash_ascii(0, key) } else { string_hash(&String::from_utf8_lossy(key)) };
        self.word(itoa::Buffer::new().format(hash).as_bytes());
    }

    #[inline]
    fn head(&mut self, arguments: usize) {
        self.commands += 1;
        self.number(b'*', arguments as u64);
    }

    #[inline]
    fn word(&mut self, word: &[u8]) {
        self.number(b'$', word.len() as u64);
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn number(&mut self, kind: u8, number: u64) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode_request(fill: impl FnOnce(&mut Request)) -> String {
        let mut request = Request::default();
        request.command(&[b"PING"]);
        request.clear();
        fill(&mut request);
        assert_eq!(request.commands(), 1);
        String::from_utf8(request.bytes().to_vec()).unwrap()
    }

    #[test]
    fn commands_are_arrays_of_words_with_their_lengths() {
        let mut row = Row::default();
        row.push_field(b"field0", b"a\r\nb");
        row.push_field(b"field1", b"");
        assert_eq!(
            encode_request(|request| request.hmset(b"user1", &row)),
            "*6\r\n$5\r\nHMSET\r\n$5\r\nuser1\r\n$6\r\nfield0\r\n$4\r\na\r\nb\r\n$6\r\nfield1\r\n$0\r\n\r\n"
        );
        assert_eq!(encode_request(|request| request.hgetall(b"user1")), "*2\r\n$7\r\nHGETALL\r\n$5\r\nuser1\r\n");
        let names: [&[u8]; 2] = [b"f1", b"f2"];
        assert_eq!(
            encode_request(|request| request.hmget(b"k", names.into_iter())),
            "*4\r\n$5\r\nHMGET\r\n$1\r\nk\r\n$2\r\nf1\r\n$2\r\nf2\r\n"
        );
    }

    /// The hashes equal the results of JDK 17's `"…".hashCode()`.
    #[test]
    fn the_index_has_javas_hash_of_each_key() {
        for (key, hash) in
            [("user1", "111578566"), ("a", "97"), ("polygenelubricants", "-2147483648"), ("größe", "98762257")]
        {
            assert_eq!(
                encode_request(|request| request.zadd(key.as_bytes())),
                format!(
                    "*4\r\n$4\r\nZADD\r\n$8\r\n_indices\r\n${}\r\n{hash}\r\n${}\r\n{key}\r\n",
                    hash.len(),
                    key.len()
                )
            );
        }
        assert_eq!(
            encode_request(|request| request.zrangebyscore(b"", 100)),
            "*7\r\n$13\r\nZRANGEBYSCORE\r\n$8\r\n_indices\r\n$1\r\n0\r\n$4\r\n+inf\r\n$5\r\nLIMIT\r\n$1\r\n0\r\n$3\r\n100\r\n"
        );
        let longest = encode_request(|request| request.zrangebyscore(b"", usize::MAX));
        assert!(longest.ends_with("$20\r\n18446744073709551615\r\n"), "{longest}");
    }
}
