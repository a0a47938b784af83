// Package meters holds the fleet's metrics: counters and histograms of what the loops do, and gauges that are read from the
// loops' cores when somebody asks.
//
// It decides nothing, keeps nothing but times of last calls, and starts no goroutine. Where metrics are shown is package
// telemetry's.
package meters
