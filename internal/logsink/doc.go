// Package logsink is where an agent's log goes: its output, a file that is replaced by size and age, and the machine's syslog.
//
// No place holds up another, nor the agent. What a place does not take is counted, told once at the others, and told at the place
// when it takes lines again. The syslog has a queue and a goroutine, which Close ends: a syslog that stands still must not stop who logs.
package logsink
