package berth

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc/codes"
)

// What a call's sender has to do before it repeats the call; sent as `berth-reason`.
const (
	notConfigured  = "NOT_CONFIGURED"  // configure the profile
	notSynced      = "NOT_SYNCED"      // open Sync and wait for the Ack
	generationGone = "GENERATION_GONE" // ask about a newer generation
	podUnknown     = "POD_UNKNOWN"     // send the pod's object

	reasonKey = "berth-reason"
)

// callError is why a call was not answered.
type callError struct {
	code   codes.Code
	reason string
	text   string
}

func (e *callError) Error() string { return e.text }

func refused(reason, format string, arguments ...any) error {
	return &callError{codes.FailedPrecondition, reason, fmt.Sprintf(format, arguments...)}
}

func invalid(format string, arguments ...any) error {
	return &callError{codes.InvalidArgument, "", fmt.Sprintf(format, arguments...)}
}

// asCallError gives any error the form in which it travels.
func asCallError(err error) *callError {
	var known *callError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded):
		return &callError{codes.DeadlineExceeded, "", err.Error()}
	case errors.Is(err, context.Canceled):
		return &callError{codes.Canceled, "", err.Error()}
	}
	return &callError{codes.Internal, "", err.Error()}
}

// contractError says what an author's function did that can't be sent; the
// attempt fails with this text.
type contractError struct {
	text   string
	logged bool
}

func (e *contractError) Error() string { return e.text }

func broken(format string, arguments ...any) error {
	return &contractError{text: fmt.Sprintf(format, arguments...)}
}

// guarded calls the author's function; a panic is an error of the function's.
func guarded(name string, function func()) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			logPanic(name, problem)
			err = &contractError{fmt.Sprintf("%s: %v", name, problem), true}
		}
	}()
	function()
	return nil
}

func logPanic(name string, problem any) {
	failures.write("function", name, "error", problem, "stack", string(debug.Stack()))
}
