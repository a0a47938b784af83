// Package nomadkeys has the keys of Nomad's configuration that have no effect here, and those that are refused, with the reasons.
package nomadkeys
