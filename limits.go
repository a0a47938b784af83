package drover

import "time"

// Limits bound one execution. Zero means: the runner's own.
type Limits struct {
	Wall        time.Duration `json:"wall,omitempty"`        // ns
	CPU         time.Duration `json:"cpu,omitempty"`         // ns of user + system time
	CPUMHz      int           `json:"cpuMHz,omitempty"`      // share of the machine
	MemoryMB    int           `json:"memoryMB,omitempty"`    //
	Pids        int           `json:"pids,omitempty"`        //
	OutputBytes int64         `json:"outputBytes,omitempty"` // for each of stdout and stderr
	OpenFiles   int           `json:"openFiles,omitempty"`   //
	FileSizeMB  int           `json:"fileSizeMB,omitempty"`  //
}
