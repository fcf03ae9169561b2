package tour

import (
	"errors"
	"fmt"
	"net/http"
)

// failure is the panic value that carries a step's error out of the step's calls.
type failure struct{ error }

// try runs a step and returns the error that ended it. Every call in a step must succeed,
// so a step's functions use check and must instead of returning errors.
func try(step func()) (err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.error
		default:
			panic(ended)
		}
	}()
	step()
	return nil
}

// check ends the step with the errors, if there are any.
func check(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(failure{err})
	}
}

// must returns the result of a call, or ends the step with its error.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// withContext is check for an error that does not name the action.
func withContext(what string, err error) {
	if err != nil {
		check(fmt.Errorf("%s: %w", what, err))
	}
}

func equal[T comparable](what string, want, got T) error {
	if want != got {
		return fmt.Errorf("%s: expected %v, received %v", what, want, got)
	}
	return nil
}

// checkAnswer ends the step unless the relay's answer is the expected one.
func checkAnswer(wanted bool, what, want string, got *http.Response, body []byte) {
	if !wanted {
		check(fmt.Errorf("%s: expected %s, received %s: %s", what, want, got.Status, body))
	}
}
