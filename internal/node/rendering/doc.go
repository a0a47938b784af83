// Package rendering renders templates of tasks: programs that whoever made the job wrote. It only computes, with what it was
// given: a template can ask for the task's environment and nothing else. What a template may need of time and memory is bounded
// here as far as that is cheap and gives good messages. That the bounds hold, whatever the template does, is ensured by
// rendering in a child process (Func is for package evaluator).
//
// Which templates there are, when they are rendered and where they are written is package hook's. It starts no
// goroutines.
package rendering
