#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "berth/plugin/v1/state.pb.h"

namespace pb = berth::plugin::v1;

using Labels = std::map<std::string, std::string>;

// Refused is a message of the stream that cannot be applied.
struct Refused : std::runtime_error {
  Refused(pb::NackReason reason, const std::string& message) : std::runtime_error(message), reason(reason) {}
  pb::NackReason reason;
};

struct Node {
  std::string name;
  Labels labels;
};

// Held has all nodes by index, up to one generation; generation 0 means that nothing is held.
struct Held {
  std::string epoch;
  std::int64_t generation = 0;
  // The first generation since which no node has changed its index.
  std::int64_t indices_since = 0;
  std::vector<Node> nodes;

  // Transferred holds what a full transfer brought.
  static Held Transferred(const std::string& epoch, const pb::Commit& commit, const pb::Chunk& all);
  // Follow takes one step. A step that is held already is skipped.
  void Follow(const pb::Delta& delta);

 private:
  // Apply takes the changes in order, and returns whether indices are others than before.
  template <typename Changes>
  bool Apply(const Changes& changes, std::uint32_t node_count);
  void Put(const pb::NodeUpsert& upsert);
  void Remove(const pb::NodeRemove& removal);
  void CheckName(std::uint32_t index, const std::string& name) const;
};

// LabelsOf reads the labels of an API object's JSON; std::invalid_argument where it is no object.
Labels LabelsOf(const std::string& json);
