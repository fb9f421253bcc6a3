//! A store's description of itself, available before anything is opened. A store's name and properties are defined only
//! here.

/// The description of a store.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The store's name on command lines and in specs.
    pub name: &'static str,
    /// A description in one line.
    pub line: &'static str,
    /// Whether operations cross a network by default; a property of the store may change this.
    pub networked: bool,
    /// The store's properties.
    pub properties: &'static [Property],
}

/// A property of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// The property's name; a trailing `*` matches any ending.
    pub name: &'static str,
    /// The property's role.
    pub role: Role,
}

/// The kind of value that a property holds, which determines how other code treats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A setting.
    Setting,
    /// A password, which is never printed or written to a file.
    Secret,
    /// The directory of the store's files.
    Directory,
    /// The hosts of the store's servers.
    Hosts,
    /// The port of the store's servers.
    Port,
}

/// A property that is a setting.
pub const fn setting(name: &'static str) -> Property {
    Property { name, role: Role::Setting }
}

/// A property that is a password.
pub const fn secret(name: &'static str) -> Property {
    Property { name, role: Role::Secret }
}

/// A property that names the directory of the store's files.
pub const fn directory(name: &'static str) -> Property {
    Property { name, role: Role::Directory }
}

/// A property that names the servers' hosts.
pub const fn hosts(name: &'static str) -> Property {
    Property { name, role: Role::Hosts }
}

/// A property that names the servers' port.
pub const fn port(name: &'static str) -> Property {
    Property { name, role: Role::Port }
}

impl About {
    /// Whether this name is one of the store's properties.
    pub fn has_property(&self, name: &str) -> bool {
        let matches =
            |own: &Property| own.name.strip_suffix('*').map_or(own.name == name, |start| name.starts_with(start));
        self.properties.iter().any(matches)
    }
}
