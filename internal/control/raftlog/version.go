package raftlog

import (
	"github.com/drover-project/drover"
	nouns "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
)

// Version is the cluster's version: that of the commands, fields and snapshots that may be written.
func (l *Log) Version() int { return nouns.VersionOf(l.machine.fsm.Store().Snapshot().Cluster()) }

// Allows reports whether the kind of command may be written.
func (l *Log) Allows(kind command.Kind) bool { return kind.Since() <= l.Version() }

// allowed refuses a command that not all servers of the cluster can read.
func (l *Log) allowed(c command.Command) error {
	need := command.Needs(c)
	if need == 1 {
		return nil
	}
	if has := l.Version(); has < need {
		return drover.Errorf(drover.NotImplemented, "%s needs cluster version %d, and this cluster writes version %d until each of its servers "+
			"runs a program that reads %d", c.Kind(), need, has, need)
	}
	return nil
}
