// Package cloud asks the metadata service of the cloud that a machine is in what the machine is there: Amazon's, Google's,
// Microsoft's, DigitalOcean's or OpenStack's. What it finds are attributes of the node under Nomad's names, which jobs'
// constraints use.
//
// Nobody is asked unless the machine's firmware, or a variable of the agent's environment, names the cloud. All answers
// are bounded, and a value that cannot be an attribute is left out. An agent begins with the answers of the one before, from a
// file. When the answers are there, the node registers with them: that is package agent's. The goroutines that ask end with their
// answers, or with the context of who asked for them.
package cloud
