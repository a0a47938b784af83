package device

import (
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/device"
	"github.com/drover-project/drover/usage"
)

// smiLog is what nvidia-smi -q -x prints, as far as it is read. Figures are texts with units: "15360 MiB"; "N/A" and the like where
// there is none.
type smiLog struct {
	Driver string   `xml:"driver_version"`
	GPUs   []smiGPU `xml:"gpu"`
}

type smiGPU struct {
	Bus         string `xml:"id,attr"`
	Name        string `xml:"product_name"`
	UUID        string `xml:"uuid"`
	Display     string `xml:"display_active"`
	Persistence string `xml:"persistence_mode"`
	MIG         struct {
		Current string `xml:"current_mig"`
	} `xml:"mig_mode"`
	Generation string    `xml:"pci>pci_gpu_link_info>pcie_gen>max_link_gen"`
	Width      string    `xml:"pci>pci_gpu_link_info>link_widths>max_link_width"`
	Memory     smiPart   `xml:"fb_memory_usage"`
	BAR1       smiPart   `xml:"bar1_memory_usage"`
	GPUUse     string    `xml:"utilization>gpu_util"`
	MemoryUse  string    `xml:"utilization>memory_util"`
	EncoderUse string    `xml:"utilization>encoder_util"`
	DecoderUse string    `xml:"utilization>decoder_util"`
	Heat       string    `xml:"temperature>gpu_temp"`
	OldPower   smiPower  `xml:"power_readings"`
	Power      smiPower  `xml:"gpu_power_readings"`
	MaxClocks  smiClocks `xml:"max_clocks"`
	driver     string    // the log's
}

type smiPart struct {
	Total string `xml:"total"`
	Used  string `xml:"used"`
}

type smiPower struct {
	Draw    string `xml:"power_draw"`
	Average string `xml:"average_power_draw"`
	Limit   string `xml:"power_limit"`
	Current string `xml:"current_power_limit"`
}

type smiClocks struct {
	Cores  string `xml:"sm_clock"`
	Memory string `xml:"mem_clock"`
}

// parseSMI reads what nvidia-smi prints.
func parseSMI(data []byte) (*smiLog, error) {
	log := &smiLog{}
	if err := xml.Unmarshal(data, log); err != nil {
		return nil, fmt.Errorf("nvidia-smi prints what cannot be read: %w", err)
	}
	for i := range log.GPUs {
		log.GPUs[i].driver = log.Driver
	}
	return log, nil
}

// figure reads a text such as "15360 MiB"; false where there is no number.
func figure(text string) (value float64, unit string, ok bool) {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	value, err := strconv.ParseFloat(number, 64)
	return value, unit, err == nil
}

// firstFigure is that of the first text that has one.
func firstFigure(texts ...string) (float64, string, bool) {
	for _, text := range texts {
		if v, unit, ok := figure(text); ok {
			return v, unit, true
		}
	}
	return 0, "", false
}

// lane is what one lane of a PCIe generation carries, in MB/s.
var lane = map[string]int64{"1": 250, "2": 500, "3": 985, "4": 1969, "5": 3938, "6": 7563}

// attributes are Nomad's of a GPU, under its names and with its units; those that are not known are missing.
func (g smiGPU) attributes(driverVersion string) map[string]any {
	out := map[string]any{}
	for name, texts := range map[string][]string{
		"memory": {g.Memory.Total}, "bar1": {g.BAR1.Total}, "cores_clock": {g.MaxClocks.Cores}, "memory_clock": {g.MaxClocks.Memory},
		"power": {g.Power.Current, g.Power.Limit, g.OldPower.Limit, g.OldPower.Current},
	} {
		if v, unit, ok := firstFigure(texts...); ok {
			out[name] = device.Int(int64(v), unit).Record()
		}
	}
	width, err := strconv.ParseInt(strings.TrimSuffix(g.Width, "x"), 10, 64)
	if perLane := lane[g.Generation]; perLane > 0 && err == nil && width > 0 {
		out["pci_bandwidth"] = device.Int(perLane*width, "MB/s").Record()
	}
	for name, text := range map[string]string{
		"driver_version": driverVersion, "display_state": g.Display, "persistence_mode": g.Persistence,
	} {
		if text != "" {
			out[name] = device.Text(text).Record()
		}
	}
	return out
}

// stats asks the tool how the GPUs are used.
func (n *nvidia) stats(ctx context.Context) ([]*usage.DeviceGroupStats, error) {
	log, err := n.ask(ctx)
	if err != nil {
		return nil, err
	}
	now := n.tool.clock.Now()
	byName := map[string]*usage.DeviceGroupStats{}
	for _, g := range log.GPUs {
		group := byName[g.Name]
		if group == nil {
			group = &usage.DeviceGroupStats{
				Vendor: nvidiaVendor, Type: "gpu", Name: g.Name, InstanceStats: map[string]*usage.DeviceStats{},
			}
			byName[g.Name] = group
		}
		group.InstanceStats[g.UUID] = g.sample(now)
	}
	return inOrder(byName), nil
}

// sample is Nomad's of a GPU, under its names.
func (g smiGPU) sample(now time.Time) *usage.DeviceStats {
	values := map[string]*usage.StatValue{}
	for name, texts := range map[string][]string{
		"GPU utilization": {g.GPUUse}, "Memory utilization": {g.MemoryUse}, "Encoder utilization": {g.EncoderUse},
		"Decoder utilization": {g.DecoderUse}, "Temperature": {g.Heat},
	} {
		if v, unit, ok := firstFigure(texts...); ok {
			values[name] = &usage.StatValue{IntNumeratorVal: whole(v), Unit: unit}
		}
	}
	state := part(g.Memory, "used of all memory")
	for name, value := range map[string]*usage.StatValue{
		"Memory state": state, "BAR1 buffer state": part(g.BAR1, "used of all BAR1 memory"), "Power usage": g.powerUse(),
	} {
		if value != nil {
			values[name] = value
		}
	}
	return &usage.DeviceStats{Summary: state, Stats: &usage.StatObject{Attributes: maps.Clone(values)}, Timestamp: now}
}

// whole is a figure as samples have it.
func whole(v float64) *int64 {
	n := int64(v)
	return &n
}

// part is a used part of a whole, nil where one of them is not known.
func part(p smiPart, description string) *usage.StatValue {
	used, unit, ok := figure(p.Used)
	total, _, also := figure(p.Total)
	if !ok || !also {
		return nil
	}
	return &usage.StatValue{IntNumeratorVal: whole(used), IntDenominatorVal: whole(total), Unit: unit, Desc: description}
}

// powerUse is what the GPU draws of what it may; nil where that is not known.
func (g smiGPU) powerUse() *usage.StatValue {
	draw, unit, ok := firstFigure(g.Power.Draw, g.Power.Average, g.OldPower.Draw)
	limit, _, also := firstFigure(g.Power.Current, g.Power.Limit, g.OldPower.Limit, g.OldPower.Current)
	if !ok || !also {
		return nil
	}
	return &usage.StatValue{
		IntNumeratorVal: whole(draw), IntDenominatorVal: whole(limit), Unit: unit, Desc: "drawn of what it may draw",
	}
}
