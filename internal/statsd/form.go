package statsd

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/telemetry"
)

// changes are counters and what is timed, as they were sent last: a receiver adds up by itself.
type changes map[string]telemetry.Reading

// of returns gauges, and what came to counters and to what is timed since the last time. What is timed is then told as the mean of
// Count values. Those that are gone are forgotten.
func (c changes) of(list []telemetry.Reading) (out []telemetry.Reading) {
	seen := make(changes, len(c))
	for _, r := range list {
		if r.Kind == telemetry.Gauge {
			out = append(out, r)
			continue
		}
		key := r.Name
		for _, l := range r.Labels {
			key += "\x00" + l[0] + "\x00" + l[1]
		}
		before := c[key]
		seen[key] = r
		if r.Count < before.Count || r.Value < before.Value {
			before = telemetry.Reading{} // it began anew
		}
		r.Count, r.Value = r.Count-before.Count, r.Value-before.Value
		switch {
		case r.Kind == telemetry.Counter && r.Value > 0:
			out = append(out, r)
		case r.Kind == telemetry.Timed && r.Count > 0:
			r.Value /= float64(r.Count)
			out = append(out, r)
		}
	}
	clear(c)
	for key, r := range seen {
		c[key] = r
	}
	return out
}

// plain lays a reading out for receivers that know no labels: their values are parts of the name, and a gauge's name has the host's
// as its second part. With rates, what stands for several values says for how many.
func plain(host string, rates bool) func(b []byte, r telemetry.Reading) []byte {
	host = part(host)
	return func(b []byte, r telemetry.Reading) []byte {
		b = append(b, named(r, host)...)
		for _, l := range r.Labels {
			b = append(append(b, '.'), part(cmp.Or(l[1], "_"))...) // a part without a text is none
		}
		b = valued(b, r)
		if rates && r.Kind == telemetry.Timed && r.Count > 1 {
			b = rated(b, r.Count)
		}
		return b
	}
}

// tagged lays a reading out for Datadog.
func tagged(host string, tags []string) func(b []byte, r telemetry.Reading) []byte {
	var common []string
	if host != "" {
		common = append(common, "host:"+tag(host))
	}
	for _, t := range tags {
		common = append(common, tag(t))
	}
	return func(b []byte, r telemetry.Reading) []byte {
		b = valued(append(b, named(r, "")...), r)
		if r.Kind == telemetry.Timed && r.Count > 1 {
			b = rated(b, r.Count)
		}
		separator := "|#"
		for _, t := range common {
			b = append(append(b, separator...), t...)
			separator = ","
		}
		for _, l := range r.Labels {
			if l[1] == "" {
				continue
			}
			b = append(append(append(append(b, separator...), l[0]...), ':'), tag(l[1])...)
			separator = ","
		}
		return b
	}
}

// named is the name of a reading, with the host's in a gauge's.
func named(r telemetry.Reading, host string) string {
	first, rest, ok := strings.Cut(r.Name, ".")
	if r.Kind != telemetry.Gauge || host == "" || !ok {
		return r.Name
	}
	return first + "." + host + "." + rest
}

// valued appends the value and its kind.
func valued(b []byte, r telemetry.Reading) []byte {
	b = append(b, ':')
	if r.Kind == telemetry.Gauge && r.Value < 0 { // else it would be subtracted from what it was
		b = append(b, '0')
	} else {
		b = strconv.AppendFloat(b, r.Value, 'f', -1, 64)
	}
	return append(b, map[telemetry.Kind]string{telemetry.Gauge: "|g", telemetry.Counter: "|c", telemetry.Timed: "|ms"}[r.Kind]...)
}

// rated appends which part of all values the one is.
func rated(b []byte, count uint64) []byte {
	return strconv.AppendFloat(append(b, "|@"...), 1/float64(count), 'g', 6, 64)
}

// part is a text as a part of a name. Names of jobs and tasks are their users': none makes a line of its own.
func part(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(":|@#, /\\", r) || r <= ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, text)
}

// tag is a text as a tag, or as its value.
func tag(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '|' || r == ',' || r <= ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, text)
}
