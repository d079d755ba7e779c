package berth

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const (
	maxReasons = 255
	maxScore   = 100
)

var furtherReasons = Reason{"further reasons, more than one answer can hold", Unschedulable}

// packVerdicts makes the message; what was not asked is sent as 0. It also shows
// which nodes passed and how many were turned down.
func packVerdicts(v Verdicts, asked *candidates) (*pb.Verdicts, *candidates, int, error) {
	count := asked.entries()
	table, err := packReasons(v.Reasons)
	if err != nil {
		return nil, nil, 0, err
	}
	sent := make([]byte, count)
	passing := make([]byte, bitBytes(count))
	rejected := 0
	for i, code := range v.Codes {
		switch {
		case !asked.asked.has(i):
		case code == 0:
			passing[i>>3] |= 1 << (i & 7)
		case int(code) > len(v.Reasons):
			return nil, nil, 0, broken("code %d has no reason: there are %d", code, len(v.Reasons))
		default:
			sent[i] = code
			rejected++
		}
	}
	left := asked.narrowed(passing)
	if rejected == 0 {
		return &pb.Verdicts{Codes: &pb.Verdicts_All{All: 0}}, left, 0, nil
	}
	return &pb.Verdicts{Codes: &pb.Verdicts_Each{Each: sent}, Reasons: table}, left, rejected, nil
}

func packReasons(reasons []Reason) ([]*pb.Reason, error) {
	if len(reasons) > maxReasons {
		return nil, broken("%d reasons, at most %d fit into a code", len(reasons), maxReasons)
	}
	table := make([]*pb.Reason, len(reasons))
	for i, reason := range reasons {
		if reason.Code == 0 {
			reason.Code = Unschedulable
		}
		if reason.Text == "" || (reason.Code != Unschedulable && reason.Code != UnschedulableAndUnresolvable) {
			return nil, broken("a reason needs a text and an unschedulable code, not %q and %v", reason.Text, reason.Code)
		}
		table[i] = &pb.Reason{Code: pb.Code(reason.Code), Text: reason.Text}
	}
	return table, nil
}

// unpackVerdicts gives the codes with their table.
func unpackVerdicts(message *pb.Verdicts, count int) (Verdicts, error) {
	verdicts := Verdicts{Codes: make([]uint8, count)}
	for _, reason := range message.GetReasons() {
		verdicts.Reasons = append(verdicts.Reasons, Reason{reason.Text, Code(reason.Code)})
	}
	switch codes := message.GetCodes().(type) {
	case *pb.Verdicts_Each:
		if len(codes.Each) != count {
			return Verdicts{}, invalid("%d codes for %d nodes", len(codes.Each), count)
		}
		copy(verdicts.Codes, codes.Each)
	case *pb.Verdicts_All:
		for i := range verdicts.Codes {
			verdicts.Codes[i] = uint8(codes.All)
		}
	}
	return verdicts, nil
}

// filterEach gives the verdicts of the form that sees one node at a time.
func filterEach(filter func(*corev1.Pod, *corev1.Node) *Reason, pod *corev1.Pod, asked *candidates) Verdicts {
	return rejected(asked.entries(), asked.each(), func(_ int, node *corev1.Node) *Reason { return filter(pod, node) })
}

// rejected gives the verdicts of so many entries, with a table of the reasons met.
func rejected(
	count int, asked iter.Seq2[int, *corev1.Node], reject func(int, *corev1.Node) *Reason,
) Verdicts {
	verdicts := Verdicts{Codes: make([]uint8, count)}
	rows := map[Reason]uint8{}
	var last *Reason
	var lastRow uint8
	for entry, node := range asked {
		reason := reject(entry, node)
		if reason == nil {
			continue
		}
		if reason != last {
			last, lastRow = reason, verdicts.row(rows, *reason)
		}
		verdicts.Codes[entry] = lastRow
	}
	return verdicts
}

func (v *Verdicts) row(rows map[Reason]uint8, reason Reason) uint8 {
	if row, known := rows[reason]; known {
		return row
	}
	if len(v.Reasons) >= maxReasons-1 {
		reason = furtherReasons
	}
	if row, known := rows[reason]; known {
		return row
	}
	v.Reasons = append(v.Reasons, reason)
	rows[reason] = uint8(len(v.Reasons))
	return rows[reason]
}

// scoreEach gives the scores of the form that sees one node at a time, in the buffer:
// they are packed before the next call has its turn, and the vector is the longest
// that a call would leave for the collector.
func scoreEach(
	buffer *[]int64, score func(*corev1.Pod, *corev1.Node) int64, pod *corev1.Pod, asked *candidates,
) []int64 {
	count := asked.entries()
	*buffer = slices.Grow((*buffer)[:0], count)[:count]
	for entry, node := range asked.each() {
		(*buffer)[entry] = score(pod, node)
	}
	return *buffer
}

// packPoints makes the message in the narrowest form; what was not asked is sent as
// 0. The author may keep the points: they are read, and neither changed nor copied.
func packPoints(points []int64, normalization Normalization, count int, asked bitmap) (*pb.Scores, error) {
	if len(points) != count {
		return nil, broken("expected %d scores, got %d", count, len(points))
	}
	var low, high int64
	for i, point := range points {
		if asked.has(i) {
			low, high = min(low, point), max(high, point)
		}
	}
	switch {
	case normalization == NormalizationNone && (low < 0 || high > maxScore):
		return nil, broken("scores from %d to %d without normalization: 0 to %d is the range", low, high, maxScore)
	case (normalization == NormalizationMax || normalization == NormalizationMaxReverse) && low < 0:
		return nil, broken("scores from %d: they must not be negative to be divided by the highest", low)
	}
	packed := &pb.Scores{Normalization: normalization.message()}
	switch {
	case low >= 0 && high <= math.MaxUint8:
		packed.Values = &pb.Scores_Uint8{Uint8: packBytes(points, asked)}
	case low >= math.MinInt32 && high <= math.MaxInt32:
		packed.Values = &pb.Scores_Int32{Int32: packInts(points, asked)}
	default:
		packed.Values = &pb.Scores_Int64{Int64: packLongs(points, asked)}
	}
	return packed, nil
}

func packBytes(points []int64, asked bitmap) []byte {
	packed := make([]byte, len(points))
	for i, point := range points {
		if asked.has(i) {
			packed[i] = byte(point)
		}
	}
	return packed
}

func packInts(points []int64, asked bitmap) []byte {
	packed := make([]byte, 4*len(points))
	for i, point := range points {
		if asked.has(i) {
			binary.LittleEndian.PutUint32(packed[4*i:], uint32(point))
		}
	}
	return packed
}

func packLongs(points []int64, asked bitmap) []byte {
	packed := make([]byte, 8*len(points))
	for i, point := range points {
		if asked.has(i) {
			binary.LittleEndian.PutUint64(packed[8*i:], uint64(point))
		}
	}
	return packed
}

// packBits makes one bit an entry, least significant first.
func packBits(bits []bool) []byte {
	packed := make([]byte, (len(bits)+7)/8)
	for i, bit := range bits {
		if bit {
			packed[i>>3] |= 1 << (i & 7)
		}
	}
	return packed
}

// unpackBits gives one bool an entry.
func unpackBits(bitmap []byte, count int) ([]bool, error) {
	if wanted := (count + 7) / 8; len(bitmap) != wanted {
		return nil, fmt.Errorf("a bitmap of %d entries has %d bytes, not %d", count, wanted, len(bitmap))
	}
	bits := make([]bool, count)
	for i := range bits {
		bits[i] = bitmap[i>>3]>>(i&7)&1 == 1
	}
	return bits, nil
}

// packStatus makes the message.
//
// Errors: the code has no meaning at this extension point, or a rejection gives no reason.
func packStatus(status *Status, allowed ...Code) (*pb.Status, error) {
	code := status.code()
	for _, each := range append(allowed, Success, Error) {
		if code != each {
			continue
		}
		if status == nil {
			return &pb.Status{Code: pb.Code(code)}, nil
		}
		if code != Success && code != Skip && len(status.Reasons) == 0 {
			return nil, broken("%v without a reason", code)
		}
		return &pb.Status{Code: pb.Code(code), Reasons: status.Reasons}, nil
	}
	return nil, broken("%v is no answer here", code)
}
