// Package program runs programs of the machine's operator beside the agent: plugins of networks and volumes, tools that tell about
// devices. They run as the agent, so Trusted says which nobody else can have changed, and Run bounds what they say and how long they take.
//
// Which programs are called when, and what their answers mean, is their callers'. It owns no goroutines.
package program
