// Package statsd sends metrics to who takes them as statsd does: statsd and Datadog's agent by UDP, statsite by TCP. Names, labels and
// the name of the host are laid out as Nomad lays them out, so that what was drawn of Nomad's is drawn of ours.
//
// It reads the metrics that all other readers get. A receiver that is missing, slow or gone costs its own metrics only. Run is its
// caller's goroutine, and starts none.
package statsd
