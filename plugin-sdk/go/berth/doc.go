// Package berth makes scheduler plugins of plain Go functions: it speaks the
// plugin protocol, mirrors the cluster generation by generation, packs answers,
// opens spans, reports health and metrics, and stops gracefully.
//
// A whole plugin:
//
//	var otherTeam = berth.Reject("node(s) belong to another team")
//
//	func filter(pod *corev1.Pod, node *corev1.Node) *berth.Reason {
//		if team, owned := node.Labels["team"]; owned && team != pod.Labels["team"] {
//			return otherTeam
//		}
//		return nil
//	}
//
//	func main() {
//		berth.Main(&berth.Plugin{Name: "team-nodes", Filter: filter})
//	}
//
// What a [Plugin] has functions for is what it announces to the scheduler. The
// functions are called one at a time, so what they share needs no locks; one
// that has to wait for something outside wraps the wait in [Await]. A panic
// fails the attempt with its text, never the process.
//
// Package berthtest runs a plugin without a scheduler.
package berth
