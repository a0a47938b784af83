package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// answering is an agent that gives each route's answer.
func answering(routes map[string]string) *httptest.Server {
	mux := http.NewServeMux()
	for pattern, answer := range routes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer) // the example's client is still there
		})
	}
	return httptest.NewServer(mux)
}

// Run a program with its files in a runner that is claimed for it alone.
func ExampleClient_Run() {
	agent := answering(map[string]string{
		"POST /v1/run": `{"runnerId":"python-1","stdout":"42\n","receipt":{"exitCode":0,"cause":"exited","wall":21000000}}`,
	})
	defer agent.Close()

	c, err := client.New(agent.URL, client.WithToken("secret"))
	if err != nil {
		fmt.Println(err)
		return
	}
	program := "print(6 * 7)"
	result, err := c.Run(context.Background(), execution.RunRequest{
		Environment: "python",
		Request:     execution.Request{Command: "python3 answer.py", Spec: execution.Spec{Limits: drover.Limits{Wall: 10 * time.Second}}},
		Files:       []execution.FileChange{{Path: "answer.py", Text: &program}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%sexit code %d after %v\n", result.Stdout, result.Receipt.ExitCode, result.Receipt.Wall)
	// Output:
	// 42
	// exit code 0 after 21ms
}

// Claim a runner, use it for several executions, and give it back.
func ExampleClient_Claim() {
	agent := answering(map[string]string{
		"POST /v1/runners":                    `{"id":"python-1","environment":"python","state":"claimed"}`,
		"POST /v1/runner/python-1/executions": `{"id":"x-1","state":"running"}`,
		"GET /v1/execution/x-1":               `{"id":"x-1","state":"ended","receipt":{"exitCode":3,"cause":"exited"}}`,
		"DELETE /v1/runner/python-1":          ``,
	})
	defer agent.Close()

	c, err := client.New(agent.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	runner, err := c.Claim(ctx, execution.ClaimRequest{Environment: "python", Wait: 5 * time.Second})
	if drover.CodeOf(err) == drover.Exhausted {
		fmt.Println("no runner became warm in five seconds")
	}
	if err != nil {
		return
	}
	x, err := c.StartExecution(ctx, runner.ID, execution.Request{Command: "exit 3"})
	if err == nil {
		x, err = c.WaitExecution(ctx, x.ID)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(runner.ID, "ended with", x.Receipt.ExitCode)
	if err := c.Release(ctx, runner.ID); err != nil {
		fmt.Println(err)
	}
	// Output: python-1 ended with 3
}

// Errors carry one of a closed set of codes.
func ExampleNew_errors() {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"not_found","message":"environment \"perl\" not found"}`)
	}))
	defer agent.Close()

	c, err := client.New(agent.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Environment(context.Background(), "perl")
	fmt.Println(drover.CodeOf(err) == drover.NotFound, err)
	// Output: true environment "perl" not found
}
