//! All nodes of a generation, as a function that answers for them sees them.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::Node;

use crate::bits::unpack_indices;
use crate::mirror::Mirror;
use crate::objects::{ObjectKey, PlacedPod};
use crate::outcomes::{Reason, Verdicts};
use crate::pb;

/// All nodes of the generation that a call is about, by index.
///
/// An answer has an entry for each node or, where the scheduler lists the nodes
/// that it asks about, for each of the list.
pub struct Nodes<'a> {
    mirror: &'a Mirror,
    /// The indices behind the entries; none: entries are nodes.
    listed: Option<Cow<'a, [u32]>>,
    /// A bit an entry; none means all.
    candidates: Option<Cow<'a, [u8]>>,
}

impl<'a> Nodes<'a> {
    /// The nodes of a mirror that a request asks about; without candidates, all.
    ///
    /// # Errors
    /// The bitmap is not as long as there are nodes, or the indices are no ascending list of nodes.
    pub(crate) fn asked_by(mirror: &'a Mirror, candidates: Option<&'a pb::Candidates>) -> Result<Self, String> {
        match candidates {
            None => Ok(Nodes { mirror, listed: None, candidates: None }),
            Some(pb::Candidates { indices: Some(indices), .. }) => {
                let listed = Some(Cow::Owned(unpack_indices(indices, mirror.len())?));
                Ok(Nodes { mirror, listed, candidates: None })
            }
            Some(pb::Candidates { bitmap, indices: None }) => Nodes::of(mirror, bitmap.as_ref().into()),
        }
    }

    /// The nodes of a mirror, of which a bitmap says which are asked about.
    ///
    /// # Errors
    /// The bitmap is not as long as there are nodes.
    pub(crate) fn of(mirror: &'a Mirror, bitmap: Cow<'a, [u8]>) -> Result<Self, String> {
        let wanted = mirror.len().div_ceil(8);
        if bitmap.len() != wanted {
            return Err(format!("a bitmap of {} entries has {wanted} bytes, not {}", mirror.len(), bitmap.len()));
        }
        Ok(Nodes { mirror, listed: None, candidates: Some(bitmap) })
    }

    /// The same entries, of which a bitmap says which are still asked about.
    pub(crate) fn only(self, entries: Vec<u8>) -> Self {
        Nodes { candidates: Some(Cow::Owned(entries)), ..self }
    }

    /// The number of nodes, asked about or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mirror.len()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mirror.len() == 0
    }

    /// The node at an index.
    #[must_use]
    pub fn at(&self, index: usize) -> &'a Node {
        self.mirror.node_at(index)
    }

    /// Whether the answer for that node matters.
    #[must_use]
    pub fn is_asked(&self, index: usize) -> bool {
        match &self.listed {
            None => self.asks(index),
            Some(listed) => {
                listed.binary_search_by(|each| (*each as usize).cmp(&index)).is_ok_and(|entry| self.asks(entry))
            }
        }
    }

    /// The nodes that are asked about, with their indices: often fewer than [`Nodes::len`].
    ///
    /// A vector has an entry for each node all the same: make it with [`Nodes::verdicts`] or
    /// [`Nodes::scores`], or write the entry at the index.
    pub fn asked(&self) -> impl Iterator<Item = (usize, &'a Node)> + '_ {
        self.asked_entries().map(|(_, index)| (index, self.mirror.node_at(index)))
    }

    /// The answer of a vector filter: why each node that is asked about is turned down.
    pub fn verdicts(&self, mut filter: impl FnMut(usize, &'a Node) -> Result<(), Reason>) -> Verdicts {
        let mut verdicts = Verdicts { codes: vec![0; self.len()], reasons: Vec::new() };
        for (index, node) in self.asked() {
            if let Err(reason) = filter(index, node) {
                verdicts.codes[index] = verdicts.row(reason);
            }
        }
        verdicts
    }

    /// The answer of a vector score: the score of each node that is asked about.
    pub fn scores(&self, mut score: impl FnMut(usize, &'a Node) -> i64) -> Vec<i64> {
        let mut points = vec![0; self.len()];
        for (index, node) in self.asked() {
            points[index] = score(index, node);
        }
        points
    }

    /// A node's index by name.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.mirror.index_of(name)
    }

    /// The pods that count on a node; none without [`Plugin::wants_pods`](crate::Plugin::wants_pods).
    pub fn pods_on(&self, node_name: &str) -> impl Iterator<Item = &'a PlacedPod> + use<'a> {
        self.mirror.pods_on(node_name)
    }

    /// A watched object as JSON.
    #[must_use]
    pub fn object(&self, key: &ObjectKey) -> Option<&'a [u8]> {
        self.mirror.object(key)
    }

    /// All watched objects as JSON.
    pub fn objects(&self) -> impl Iterator<Item = (&'a ObjectKey, &'a [u8])> + use<'a> {
        self.mirror.objects()
    }

    /// How many entries an answer has.
    pub(crate) fn entries(&self) -> usize {
        self.listed.as_ref().map_or(self.len(), |listed| listed.len())
    }

    /// Whether the answer for the node of that entry matters.
    pub(crate) fn asks(&self, entry: usize) -> bool {
        self.candidates.as_ref().is_none_or(|bitmap| bitmap[entry >> 3] >> (entry & 7) & 1 == 1)
    }

    /// The entries whose answer matters, with the indices of their nodes.
    pub(crate) fn asked_entries(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let index = |entry: usize| self.listed.as_ref().map_or(entry, |listed| listed[entry] as usize);
        (0..self.entries()).filter(|entry| self.asks(*entry)).map(move |entry| (entry, index(entry)))
    }

    /// The entries of an answer, out of one for each node.
    ///
    /// # Errors
    /// There is not one for each node.
    pub(crate) fn entries_of<T: Copy>(&self, of_all: Vec<T>, what: &str) -> Result<Vec<T>, String> {
        if of_all.len() != self.len() {
            return Err(format!("expected {} {what}, got {}", self.len(), of_all.len()));
        }
        Ok(match &self.listed {
            None => of_all,
            Some(listed) => listed.iter().map(|index| of_all[*index as usize]).collect(),
        })
    }

    /// How many nodes are asked about.
    pub(crate) fn count(&self) -> usize {
        match &self.candidates {
            None => self.entries(),
            Some(_) => self.asked_entries().count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::{Code, Request};

    use crate::bits::pack_indices;
    use crate::pb::scheduling_service_client::SchedulingServiceClient;
    use crate::pb::{self, scores::Values, verdicts::Codes};
    use crate::plugin::Plugin;
    use crate::testing::{Host, node, pod};
    use crate::{Nodes, Reason, Verdicts};

    fn host() -> Host {
        let plugin = Plugin::new("p", ())
            .filter_nodes(|(), _, nodes: &Nodes<'_>| Verdicts {
                codes: (0..nodes.len()).map(|index| u8::from(index == 1)).collect(),
                reasons: vec![Reason::new("node(s) were the second")],
            })
            .score(|(), _, node| node.metadata.name.as_deref().map_or(0, |name| i64::from(name == "c") * 7));
        Host::run(plugin, ["a", "b", "c"].map(node))
    }

    fn asked(host: &Host, indices: Vec<u8>) -> Result<pb::FilterScoreResponse, tonic::Status> {
        let candidates = pb::Candidates { indices: Some(indices.into()), ..Default::default() };
        let request = pb::FilterScoreRequest { call: Some(host.call(pod("p"))), candidates: Some(candidates) };
        let mut plugin = SchedulingServiceClient::new(host.channel.clone());
        host.until(async move { plugin.filter_score(Request::new(request)).await }).map(tonic::Response::into_inner)
    }

    #[test]
    fn an_answer_about_listed_nodes_has_an_entry_for_each() {
        let host = host();

        let answer = asked(&host, pack_indices(&[1, 2]).to_vec()).expect("an answer");

        let verdicts = answer.filter.and_then(|filter| filter.verdicts).expect("verdicts");
        let scores = answer.score.and_then(|score| score.scores).expect("scores");
        assert_eq!(Some(Codes::Each(vec![1, 0].into())), verdicts.codes);
        assert_eq!(Some(Values::Uint8(vec![0, 7].into())), scores.values);
    }

    #[test]
    fn an_empty_list_asks_about_no_node() {
        let host = host();

        let answer = asked(&host, Vec::new()).expect("an answer");

        assert_eq!(Some(Codes::All(0)), answer.filter.and_then(|filter| filter.verdicts).expect("verdicts").codes);
        assert_eq!(None, answer.score);
    }

    #[test]
    fn indices_that_list_no_nodes_are_refused() {
        let host = host();
        let cases = [
            (vec![0, 0, 0, 0, 1], "candidates: indices of 5 bytes, each has 4"),
            (pack_indices(&[0, 2, 1]).to_vec(), "candidates: index 1 after 2: they have to ascend"),
            (pack_indices(&[1, 1]).to_vec(), "candidates: index 1 after 1: they have to ascend"),
            (pack_indices(&[0, 3]).to_vec(), "candidates: index 3 of 3 nodes"),
        ];
        for (indices, expected) in cases {
            let problem = asked(&host, indices).expect_err("a refusal");
            assert_eq!((Code::InvalidArgument, expected), (problem.code(), problem.message()));
        }
    }
}
