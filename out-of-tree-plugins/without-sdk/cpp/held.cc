#include "held.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <utility>

Held Held::Transferred(const std::string& epoch, const pb::Commit& commit, const pb::Chunk& all) {
  Held held;
  held.Apply(all.changes(), commit.node_count());
  held.epoch = epoch;
  held.generation = held.indices_since = commit.generation();
  return held;
}

void Held::Follow(const pb::Delta& delta) {
  if (delta.generation() <= generation) return;
  if (delta.base_generation() != generation) {
    throw Refused(pb::NACK_REASON_GAP, std::to_string(generation) + " is held");
  }
  if (Apply(delta.changes(), delta.node_count())) indices_since = delta.generation();
  generation = delta.generation();
}

template <typename Changes>
bool Held::Apply(const Changes& changes, std::uint32_t node_count) {
  const auto before = nodes.size();
  bool removed = false;
  for (const pb::Change& change : changes) {
    // Pods and objects of other kinds were not asked for.
    if (change.has_node_upsert()) {
      Put(change.node_upsert());
    } else if (change.has_node_remove()) {
      Remove(change.node_remove());
      removed = true;
    }
  }
  if (nodes.size() != node_count) {
    throw Refused(pb::NACK_REASON_MISMATCH, std::to_string(nodes.size()) + " nodes are held");
  }
  return removed || before != nodes.size();
}

void Held::Put(const pb::NodeUpsert& upsert) {
  Node node{upsert.name(), {}};
  try {
    node.labels = LabelsOf(upsert.object());
  } catch (const std::invalid_argument& error) {
    throw Refused(pb::NACK_REASON_BAD_OBJECT, error.what());
  }
  if (upsert.index() == nodes.size()) {
    nodes.push_back(std::move(node));
  } else {
    CheckName(upsert.index(), upsert.name());
    nodes[upsert.index()] = std::move(node);
  }
}

void Held::Remove(const pb::NodeRemove& removal) {
  CheckName(removal.index(), removal.name());
  std::swap(nodes[removal.index()], nodes.back());
  nodes.pop_back();
}

void Held::CheckName(std::uint32_t index, const std::string& name) const {
  if (index >= nodes.size() || nodes[index].name != name) {
    throw Refused(pb::NACK_REASON_MISMATCH, name + " is not at " + std::to_string(index));
  }
}

Labels LabelsOf(const std::string& json) {
  google::protobuf::Struct object;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &object);
  const auto metadata = object.fields().find("metadata");
  if (!parsed.ok() || metadata == object.fields().end()) {
    throw std::invalid_argument("no object with metadata");
  }
  Labels labels;
  const auto& fields = metadata->second.struct_value().fields();
  if (const auto found = fields.find("labels"); found != fields.end()) {
    for (const auto& [key, value] : found->second.struct_value().fields()) labels[key] = value.string_value();
  }
  return labels;
}
