// Rack-aware sends a pod group to the racks that its pods prefer, and to as few of
// them as it can.
package main

import "berth.dev/plugin-sdk/go/berth"

func main() { berth.Main(plugin()) }
