package node

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// showDevices prints the devices that jobs may ask for, and which allocation has each; nothing where there are none.
func showDevices(app *term.App, n *drover.Node, allocs []*drover.Allocation) error {
	if n.NodeResources == nil || len(n.NodeResources.Devices) == 0 {
		return nil
	}
	owners := map[string]string{}
	for _, a := range allocs {
		if !a.HoldsResources() || a.AllocatedResources == nil {
			continue
		}
		for _, t := range a.AllocatedResources.Tasks {
			for _, d := range t.Devices {
				for _, id := range d.DeviceIDs {
					owners[d.Vendor+" "+id] = a.Name
				}
			}
		}
	}
	var rows [][]string
	for _, d := range n.NodeResources.Devices {
		memory := ""
		if v, ok := d.Attribute("memory"); ok {
			memory = v.Text()
		}
		for _, i := range d.Instances {
			rows = append(rows, []string{
				d.Vendor + "/" + d.Type + "/" + d.Name, i.ID, memory, term.YesNo(i.Healthy), owners[d.Vendor+" "+i.ID], i.HealthDescription,
			})
		}
	}
	term.Section(app.Out, "Devices")
	return term.Table(app.Out, "", "Device|ID|Memory|Healthy|Given to|Remarks", rows)
}
