// Command claim executes a program in a warm runner. It makes an environment, claims a runner of it, copies a file in, runs it,
// and prints what it wrote and how it ended.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, cmp.Or(os.Getenv("DROVER_ADDR"), "http://127.0.0.1:4646")); err != nil {
		fmt.Fprintln(os.Stderr, "claim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address string) error {
	c, err := client.New(address, client.WithToken(os.Getenv("DROVER_TOKEN")))
	if err != nil {
		return err
	}
	env := execution.Environment{ID: "example", Image: "host", PoolSize: 2, MemoryMB: 64}
	if _, _, err := c.PutEnvironment(ctx, env); err != nil {
		return err
	}
	runner, err := c.Claim(ctx, execution.ClaimRequest{Environment: env.ID, Wait: 30 * time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = c.Release(context.WithoutCancel(ctx), runner.ID) }() // else it ends when it was idle for long

	script := "read name; echo hello, $name"
	if err := c.ChangeFiles(ctx, runner.ID, execution.FileChange{Path: "greet.sh", Text: &script}); err != nil {
		return err
	}
	session, err := c.Execute(ctx, runner.ID, execution.Request{
		Command: "sh greet.sh",
		Spec:    execution.Spec{Stdin: true, Limits: drover.Limits{Wall: 10 * time.Second}},
	})
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Write(ctx, []byte("world\n")); err != nil {
		return err
	}
	for {
		frame, err := session.Next(ctx)
		if err != nil {
			return err
		}
		os.Stdout.Write(frame.Data)
		if r := frame.Receipt; r != nil {
			fmt.Printf("exit code %d after %v\n", r.ExitCode, r.Wall.Round(time.Millisecond))
			return nil
		}
	}
}
