//! The location of files: a parsed URI.

use loadstone_session::EngineError;

/// The supported file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Local files.
    File,
    /// Hadoop's distributed file system.
    Hdfs,
}

/// A file system and a path on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The type of file system.
    pub scheme: Scheme,
    /// The file system's server, such as `namenode:8020`; empty for local files.
    pub authority: String,
    /// The path, which begins with `/`.
    pub path: String,
}

impl Location {
    /// Parses `file:///data`, `/data`, `data` or `hdfs://host:8020/data`. A relative path is resolved from the working
    /// directory.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        if let Some(rest) = text.strip_prefix("hdfs://") {
            let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
            if authority.is_empty() {
                return Err(EngineError::usage(format!("\"{text}\" is missing a name node"))
                    .hint("write hdfs://HOST:PORT/DIRECTORY"));
            }
            return Ok(Self { scheme: Scheme::Hdfs, authority: authority.to_owned(), path: clean(path) });
        }
        let path = match text.strip_prefix("file:") {
            // Both file:/x and file:///x are accepted. Files on another host cannot be read.
            Some(rest) => match rest.strip_prefix("//") {
                Some(rest) if !rest.starts_with('/') => {
                    return Err(EngineError::usage(format!("\"{text}\" names a host, but files are local"))
                        .hint("write file:///DIRECTORY"));
                }
                Some(rest) => rest,
                None => rest,
            },
            None => text,
        };
        if let Some((scheme, _)) = path.split_once("://") {
            return Err(EngineError::usage(format!("there is no file system \"{scheme}\" ({text})"))
                .hint("use file:///DIRECTORY or hdfs://HOST:PORT/DIRECTORY"));
        }
        if path.is_empty() {
            return Err(
                EngineError::usage(format!("\"{text}\" is missing a directory")).hint("write file:///DIRECTORY")
            );
        }
        let path = std::path::absolute(path)
            .map_err(|error| EngineError::failed(format!("\"{text}\" cannot be made absolute: {error}")))?;
        let path = path.to_str().ok_or_else(|| {
            EngineError::usage(format!("\"{text}\" is not UTF-8")).hint("use a directory whose name is UTF-8")
        })?;
        Ok(Self { scheme: Scheme::File, authority: String::new(), path: clean(path) })
    }

    /// The location as a URI.
    pub fn uri(&self) -> String {
        match self.scheme {
            Scheme::File => format!("file://{}", self.path),
            Scheme::Hdfs => format!("hdfs://{}{}", self.authority, self.path),
        }
    }
}

/// Removes trailing slashes.
fn clean(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_splits_into_file_system_and_path() {
        for (text, uri) in [
            ("file:///data/x/", "file:///data/x"),
            ("file:/data", "file:///data"),
            ("/data", "file:///data"),
            ("hdfs://nn:8020/bench", "hdfs://nn:8020/bench"),
            ("hdfs://nn", "hdfs://nn/"),
        ] {
            assert_eq!(Location::parse(text).unwrap().uri(), uri, "{text}");
        }
        for bad in ["s3://bucket/x", "hdfs:///x", "file://host/x", ""] {
            let error = Location::parse(bad).unwrap_err();
            assert!(error.is_usage() && error.hint.is_some(), "{bad}: {error:?}");
        }
    }
}
