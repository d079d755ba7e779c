// Coscheduling schedules the pods of a PodGroup together, or not at all.
package main

import "berth.dev/plugin-sdk/go/berth"

func main() { berth.Main(newCoscheduling().plugin) }
