//! Sets of nodes as bits: what searches over tens of thousands of commits count with.

use super::graph::Node;

/// A set of nodes below a fixed bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// The empty set of nodes below `len`.
    pub fn new(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(64)],
        }
    }

    /// Whether `node` is in the set. A node beyond the bound is not.
    pub fn contains(&self, node: Node) -> bool {
        let (word, bit) = place(node);
        self.words.get(word).is_some_and(|w| w & bit != 0)
    }

    /// Adds `node`.
    ///
    /// # Panics
    /// When `node` is beyond the bound.
    pub fn insert(&mut self, node: Node) {
        let (word, bit) = place(node);
        self.words[word] |= bit;
    }

    /// Takes `node` out, if it is there.
    pub fn remove(&mut self, node: Node) {
        let (word, bit) = place(node);
        if let Some(w) = self.words.get_mut(word) {
            *w &= !bit;
        }
    }

    /// How many nodes are in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether no node is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// The nodes of the set, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = Node> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let rest = move |w: &u64| Some(w & (w - 1)).filter(|&w| w != 0);
            std::iter::successors(Some(word).filter(|&w| w != 0), rest)
                .map(move |w| (i * 64) as Node + w.trailing_zeros())
        })
    }

    /// What is in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// What is in this set and not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    fn zip(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        debug_assert_eq!(self.words.len(), other.words.len(), "sets of one graph");
        let pairs = self.words.iter().zip(&other.words);
        Self {
            words: pairs.map(|(&a, &b)| combine(a, b)).collect(),
        }
    }
}

/// The word and the bit in it where `node` is kept.
fn place(node: Node) -> (usize, u64) {
    (node as usize / 64, 1 << (node % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nodes: &[Node]) -> Bits {
        let mut bits = Bits::new(200);
        for &node in nodes {
            bits.insert(node);
        }
        bits
    }

    #[test]
    fn nodes_come_back_in_order_across_words() {
        let bits = of(&[199, 0, 63, 64, 127, 128]);
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 64, 127, 128, 199]);
        assert_eq!(bits.count(), 6);
        assert!(bits.contains(64) && !bits.contains(65) && !bits.contains(5000));
    }

    #[test]
    fn sets_are_combined_bit_by_bit() {
        let (a, b) = (of(&[1, 70, 130]), of(&[70, 131]));
        assert_eq!(a.and(&b), of(&[70]));
        assert_eq!(a.minus(&b), of(&[1, 130]));
        assert!(a.and(&of(&[2])).is_empty());
    }

    #[test]
    fn a_removed_node_is_gone_and_removing_twice_is_fine() {
        let mut bits = of(&[3, 90]);
        bits.remove(90);
        bits.remove(90);
        assert_eq!(bits, of(&[3]));
    }
}
