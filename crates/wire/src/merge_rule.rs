//! Adds the parts of several segments' events. The rule for each type is next to its definition.

/// A part of an event that can be added to the same part of another segment's event.
pub trait Merge {
    /// Adds the part of another segment.
    fn merge(&mut self, other: Self);
}

impl Merge for u64 {
    fn merge(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

impl<T: Merge, const N: usize> Merge for [T; N] {
    fn merge(&mut self, other: Self) {
        self.iter_mut().zip(other).for_each(|(own, other)| own.merge(other));
    }
}

/// Appends the elements of the other segment.
impl<T> Merge for Vec<T> {
    fn merge(&mut self, other: Self) {
        self.extend(other);
    }
}

/// Merges the parts that are known.
impl<T: Merge> Merge for Option<T> {
    fn merge(&mut self, other: Self) {
        match (self.as_mut(), other) {
            (Some(own), Some(other)) => own.merge(other),
            (None, other) => *self = other,
            (Some(_), None) => {}
        }
    }
}

/// The sum of two counts, if both are known.
pub fn add_known(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    Some(first?.saturating_add(second?))
}

/// The smaller of two values. If only one value is known, that value.
pub fn min_known<T: PartialOrd>(first: Option<T>, second: Option<T>) -> Option<T> {
    match (first, second) {
        (Some(first), Some(second)) => Some(if second < first { second } else { first }),
        (first, second) => first.or(second),
    }
}

/// The larger of two values. If only one value is known, that value.
pub fn max_known<T: PartialOrd>(first: Option<T>, second: Option<T>) -> Option<T> {
    match (first, second) {
        (Some(first), Some(second)) => Some(if second > first { second } else { first }),
        (first, second) => first.or(second),
    }
}

/// Merges the named fields of another part into this part.
macro_rules! merge_fields {
    ($own:ident, $other:ident: $($field:ident),+ $(,)?) => {
        $($own.$field.merge($other.$field);)+
    };
}
pub(crate) use merge_fields;

/// Merges values of a type by merging each of these fields.
#[macro_export]
macro_rules! merge_fields_of {
    ($type:ty: $($field:ident),+) => {
        impl $crate::merge_rule::Merge for $type {
            fn merge(&mut self, other: Self) {
                $($crate::merge_rule::Merge::merge(&mut self.$field, other.$field);)+
            }
        }
    };
}
