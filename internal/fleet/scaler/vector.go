package scaler

import "github.com/drover-project/drover"

// vector is a size in every dimension that work may ask for; the last ones are devices.
type vector [5]int64

const firstDevice = 3

// vectorOf is a capacity without devices, in the order cpu, memory, disk.
func vectorOf(c drover.Capacity) vector { return vector{c.CPU, c.MemoryMB, c.DiskMB} }

// sized is a capacity with devices, in the places that the plan gave to their names.
func (p *plan) sized(c drover.Capacity, devices map[string]int) (v vector) {
	v = vectorOf(c)
	for i, name := range p.devices {
		v[firstDevice+i] = int64(devices[name])
	}
	return v
}

// fit returns how many of each fit into v, at most n.
func (v *vector) fit(each *vector, n int) int {
	for d := range v {
		if each[d] > 0 {
			if v[d] < each[d] {
				return 0
			}
			if k := v[d] / each[d]; k < int64(n) {
				n = int(k)
			}
		}
	}
	return n
}

// take subtracts n times each; a negative n gives it back.
func (v *vector) take(each *vector, n int) {
	for d := range v {
		v[d] -= each[d] * int64(n)
	}
}

// holds reports whether o is at most v in every dimension.
func (v *vector) holds(o *vector) bool {
	for d := range v {
		if o[d] > v[d] {
			return false
		}
	}
	return true
}
