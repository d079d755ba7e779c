package berth

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"

	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const indexBytes = 4

// candidates are the nodes that a call asks about, and the entries of the vectors
// that answer it: one for each node, or one for each index of a list.
type candidates struct {
	mirror *mirror
	// listed are the nodes' indices, one for each entry, as they travel; nil:
	// entry i is node i.
	listed []byte
	asked  bitmap
}

// candidatesOf reads which nodes are asked about; no message asks about all.
func candidatesOf(m *mirror, message *pb.Candidates) (*candidates, error) {
	count := len(m.nodes)
	switch {
	case message == nil:
		return &candidates{mirror: m}, nil
	case message.Indices != nil:
		if err := ascendingBelow(message.Indices, count); err != nil {
			return nil, err
		}
		return &candidates{mirror: m, listed: message.Indices}, nil
	}
	if wanted := bitBytes(count); len(message.Bitmap) != wanted {
		return nil, fmt.Errorf("a bitmap of %d entries has %d bytes, not %d", count, wanted, len(message.Bitmap))
	}
	return &candidates{mirror: m, asked: message.Bitmap}, nil
}

func ascendingBelow(indices []byte, count int) error {
	if len(indices)%indexBytes != 0 {
		return fmt.Errorf("%d bytes of indices, which are %d each", len(indices), indexBytes)
	}
	for at, before := 0, -1; at < len(indices); at += indexBytes {
		index := int(binary.LittleEndian.Uint32(indices[at:]))
		if index <= before {
			return fmt.Errorf("index %d after %d: they are to ascend", index, before)
		}
		if index >= count {
			return fmt.Errorf("index %d: there are %d nodes", index, count)
		}
		before = index
	}
	return nil
}

// entries is the length of the answer's vectors.
func (c *candidates) entries() int {
	if c.listed != nil {
		return len(c.listed) / indexBytes
	}
	return len(c.mirror.nodes)
}

// index is the node that an entry is about.
func (c *candidates) index(entry int) int {
	if c.listed != nil {
		return int(binary.LittleEndian.Uint32(c.listed[entry*indexBytes:]))
	}
	return entry
}

// each yields the nodes that are asked about, with their entries.
func (c *candidates) each() iter.Seq2[int, *corev1.Node] {
	return func(yield func(int, *corev1.Node) bool) {
		for entry := range c.entries() {
			if c.asked.has(entry) && !yield(entry, c.mirror.nodes[c.index(entry)]) {
				return
			}
		}
	}
}

// count says how many nodes are asked about.
func (c *candidates) count() int {
	if c.asked == nil {
		return c.entries()
	}
	total := 0
	for at, octet := range c.asked {
		if rest := c.entries() - at*8; rest < 8 {
			octet &= 1<<rest - 1
		}
		total += bits.OnesCount8(octet)
	}
	return total
}

// narrowed asks about those of the entries that have a bit.
func (c *candidates) narrowed(asked bitmap) *candidates {
	return &candidates{c.mirror, c.listed, asked}
}

// nodes gives all nodes, as functions that answer for all at once see them.
func (c *candidates) nodes() *Nodes {
	if c.listed == nil {
		return &Nodes{c.mirror, c.asked}
	}
	asked := make([]byte, bitBytes(len(c.mirror.nodes)))
	for entry := range c.entries() {
		if index := c.index(entry); c.asked.has(entry) {
			asked[index>>3] |= 1 << (index & 7)
		}
	}
	return &Nodes{c.mirror, asked}
}

// picked gives the entries out of an author's vector, which has one for each node.
func picked[T any](c *candidates, vector []T, what string) ([]T, error) {
	if count := len(c.mirror.nodes); len(vector) != count {
		return nil, broken("expected %d %s, got %d", count, what, len(vector))
	}
	if c.listed == nil {
		return vector, nil
	}
	entries := make([]T, c.entries())
	for entry := range entries {
		entries[entry] = vector[c.index(entry)]
	}
	return entries, nil
}

// bitmap is a bit an entry; nil: all of them.
type bitmap []byte

func (b bitmap) has(entry int) bool { return b == nil || b[entry>>3]>>(entry&7)&1 == 1 }

func bitBytes(count int) int { return (count + 7) / 8 }
