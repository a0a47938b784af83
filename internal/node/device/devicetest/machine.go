package devicetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Machine is a folder that looks like a machine's root.
type Machine struct {
	Root string
	Tool string // the program

	t    testing.TB
	gpus []GPU
}

// GPU is one of NVIDIA's. What is empty is not known to the program.
type GPU struct {
	UUID   string
	Model  string
	Minor  int
	Memory int // MiB
	MIG    string
}

// New returns a machine that has no devices.
func New(t testing.TB) *Machine {
	t.Helper()
	root := t.TempDir()
	return &Machine{t: t, Root: root, Tool: filepath.Join(root, "nvidia-smi")}
}

// NVIDIA makes the machine have these GPUs and no others. The files that all of them share are there, and a library.
func (m *Machine) NVIDIA(gpus ...GPU) {
	m.t.Helper()
	m.must(os.RemoveAll(filepath.Join(m.Root, "proc/driver/nvidia")))
	for _, g := range m.gpus {
		m.must(os.RemoveAll(m.node(g)))
	}
	m.gpus = gpus
	m.Write("proc/driver/nvidia/version",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc 12\n")
	for _, name := range []string{"nvidiactl", "nvidia-uvm"} {
		m.Device("dev/" + name)
	}
	m.Write("usr/lib64/libcuda.so.550.54.15", "library")
	if err := os.Symlink("libcuda.so.550.54.15", filepath.Join(m.Root, "usr/lib64/libcuda.so.1")); err != nil && !os.IsExist(err) {
		m.t.Fatal(err)
	}
	for _, g := range gpus {
		m.Write(fmt.Sprintf("proc/driver/nvidia/gpus/%s/information", bus(g)), fmt.Sprintf(
			"Model: \t\t %s\nIRQ:   \t\t 67\nGPU UUID: \t %s\nBus Type: \t PCIe\nBus Location: \t %s\nDevice Minor: \t %d\nGPU Excluded:\t No\n",
			g.Model, g.UUID, bus(g), g.Minor))
		m.Device(fmt.Sprintf("dev/nvidia%d", g.Minor))
	}
	m.Answer(Log(gpus...))
}

// bus is the GPU's place.
func bus(g GPU) string { return fmt.Sprintf("0000:0%x:00.0", g.Minor+1) }

// node is the GPU's device file.
func (m *Machine) node(g GPU) string {
	return filepath.Join(m.Root, fmt.Sprintf("dev/nvidia%d", g.Minor))
}

// Render makes a render node of a vendor ("0x1002" is AMD, "0x8086" Intel); files are those of its PCI device in sysfs.
func (m *Machine) Render(minor int, vendor, slot, module string, files map[string]string) {
	m.t.Helper()
	dir := fmt.Sprintf("sys/class/drm/renderD%d/device/", minor)
	m.Write(dir+"vendor", vendor+"\n")
	m.Write(dir+"uevent", "DRIVER="+module+"\nPCI_CLASS=30000\nPCI_SLOT_NAME="+slot+"\n")
	for name, text := range files {
		m.Write(dir+name, text+"\n")
	}
	m.Device(fmt.Sprintf("dev/dri/renderD%d", minor))
}

// Answer makes the program print a text.
func (m *Machine) Answer(text string) {
	m.t.Helper()
	m.Write("answer.xml", text)
	m.Script("[ \"$*\" = '-q -x' ] || exit 9; exec cat " + filepath.Join(m.Root, "answer.xml"))
}

// Script makes the program a shell script.
func (m *Machine) Script(text string) {
	m.t.Helper()
	draft := m.Tool + ".draft"
	m.must(os.WriteFile(draft, []byte("#!/bin/sh\n"+text+"\n"), 0o600))
	m.must(os.Chmod(draft, 0o700))
	m.must(os.Rename(draft, m.Tool)) // one that runs is not written to
}

// Write makes a file with its folders.
func (m *Machine) Write(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.Root, name)
	m.must(os.MkdirAll(filepath.Dir(path), 0o755))
	m.must(os.WriteFile(path, []byte(text), 0o600))
}

// Device makes a device file that behaves as /dev/zero; without root it is an ordinary file.
func (m *Machine) Device(name string) {
	m.t.Helper()
	path := filepath.Join(m.Root, name)
	m.must(os.MkdirAll(filepath.Dir(path), 0o755))
	err := unix.Mknod(path, unix.S_IFCHR|0o660, int(unix.Mkdev(1, 5)))
	if errors.Is(err, unix.EPERM) {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil && !os.IsExist(err) {
		m.t.Fatal(err)
	}
}

func (m *Machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// Log is what nvidia-smi -q -x prints about GPUs, shortened.
func Log(gpus ...GPU) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>550.54.15</driver_version>
	<cuda_version>12.4</cuda_version>
`)
	fmt.Fprintf(&b, "\t<attached_gpus>%d</attached_gpus>\n", len(gpus))
	for _, g := range gpus {
		mig := g.MIG
		if mig == "" {
			mig = "N/A"
		}
		fmt.Fprintf(&b, `	<gpu id="0000%s">
		<product_name>%s</product_name>
		<display_active>Disabled</display_active>
		<persistence_mode>Enabled</persistence_mode>
		<mig_mode><current_mig>%s</current_mig><pending_mig>%s</pending_mig></mig_mode>
		<uuid>%s</uuid>
		<minor_number>%d</minor_number>
		<pci><pci_gpu_link_info>
			<pcie_gen><max_link_gen>3</max_link_gen><current_link_gen>1</current_link_gen></pcie_gen>
			<link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
		</pci_gpu_link_info></pci>
		<fb_memory_usage><total>%d MiB</total><reserved>392 MiB</reserved><used>1024 MiB</used></fb_memory_usage>
		<bar1_memory_usage><total>256 MiB</total><used>2 MiB</used></bar1_memory_usage>
		<utilization><gpu_util>42 %%</gpu_util><memory_util>7 %%</memory_util>
			<encoder_util>0 %%</encoder_util><decoder_util>N/A</decoder_util></utilization>
		<temperature><gpu_temp>28 C</gpu_temp></temperature>
		<gpu_power_readings><power_draw>9.23 W</power_draw><current_power_limit>70.00 W</current_power_limit></gpu_power_readings>
		<max_clocks><graphics_clock>1590 MHz</graphics_clock><sm_clock>1590 MHz</sm_clock><mem_clock>5001 MHz</mem_clock></max_clocks>
	</gpu>
`, strings.ToUpper(bus(g)), g.Model, mig, mig, g.UUID, g.Minor, g.Memory)
	}
	b.WriteString("</nvidia_smi_log>\n")
	return b.String()
}
