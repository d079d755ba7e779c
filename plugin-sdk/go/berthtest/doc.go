// Package berthtest runs a plugin without a scheduler: a host that speaks the
// scheduler's side of the protocol, over a real socket, and checks what comes
// back.
//
//	func TestOtherTeamsAreKeptOut(t *testing.T) {
//		host := berthtest.Run(t, plugin, berthtest.Node("n0", berthtest.Labels{"team": "red"}))
//		answer := host.Filter(berthtest.Pod("p", berthtest.Labels{"team": "blue"}))
//		if answer.Passes("n0") {
//			t.Error("a pod got onto another team's node")
//		}
//	}
package berthtest
