// Command register registers a batch job with Nomad's own Go client, waits for its end, and prints what it wrote.
package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hashicorp/nomad/api"
)

func main() {
	if err := run(cmp.Or(os.Getenv("DROVER_ADDR"), "http://127.0.0.1:4646")); err != nil {
		fmt.Fprintln(os.Stderr, "register:", err)
		os.Exit(1)
	}
}

func run(address string) error {
	client, err := api.NewClient(&api.Config{Address: address, SecretID: os.Getenv("DROVER_TOKEN")})
	if err != nil {
		return err
	}
	task := api.NewTask("greet", "sandbox").
		SetConfig("image", "host").
		SetConfig("command", "/bin/sh").
		SetConfig("args", []string{"-c", "echo hello from $NOMAD_JOB_NAME"})
	job := api.NewBatchJob("hello", "hello", "global", 50).AddTaskGroup(api.NewTaskGroup("work", 1).AddTask(task))
	if _, _, err := client.Jobs().Register(job, nil); err != nil {
		return err
	}
	alloc, err := ended(client, "hello")
	if err != nil {
		return err
	}
	frames, errs := client.AllocFS().Logs(alloc, false, "greet", "stdout", "start", 0, nil, nil)
	for {
		select {
		case f, ok := <-frames:
			if !ok {
				return nil
			}
			os.Stdout.Write(f.Data)
		case err := <-errs:
			if err == nil || err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// ended waits with blocking queries until the job's allocation is complete.
func ended(client *api.Client, job string) (*api.Allocation, error) {
	query := &api.QueryOptions{WaitTime: 10 * time.Second}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		list, meta, err := client.Jobs().Allocations(job, false, query)
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			switch a.ClientStatus {
			case api.AllocClientStatusComplete:
				alloc, _, err := client.Allocations().Info(a.ID, nil)
				return alloc, err
			case api.AllocClientStatusFailed:
				return nil, fmt.Errorf("allocation %s failed: %s", a.ID, a.ClientDescription)
			}
		}
		query.WaitIndex = meta.LastIndex
	}
	return nil, fmt.Errorf("job %s did not end within a minute", job)
}
