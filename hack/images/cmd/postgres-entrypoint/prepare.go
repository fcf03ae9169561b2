package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// prepare makes the cluster unless it is there. It appears complete or not at all:
// a container may be killed at any moment.
func (o *options) prepare() error {
	if _, err := os.Stat(o.data); err == nil { //nolint:gosec // whoever starts the container names the folder
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look for the database cluster: %w", err)
	}
	fresh := o.data + ".new"
	if err := os.RemoveAll(fresh); err != nil { //nolint:gosec // whoever starts the container names the folder
		return fmt.Errorf("delete an unfinished database cluster: %w", err)
	}
	initdb := []string{"-D", fresh, "-U", "postgres", "--encoding=UTF8", "--locale=C", "--auth-local=trust", "--auth-host=" + o.method()}
	if o.passwordFile != "" {
		initdb = append(initdb, "--pwfile="+o.passwordFile)
	}
	if err := run(exec.Command(o.program("initdb"), initdb...)); err != nil { //nolint:gosec,noctx // the image's own program, which lives as long as the container
		return fmt.Errorf("make the database cluster: %w", err)
	}
	if err := o.open(fresh); err != nil {
		return err
	}
	if o.database != "" {
		// The server alone, without a port: nobody connects before all is there.
		single := exec.Command(o.program("postgres"), "--single", "-D", fresh, "postgres") //nolint:gosec,noctx // the image's own program, which lives as long as the container
		single.Stdin = strings.NewReader("CREATE DATABASE " + o.database + "\n")
		if err := run(single); err != nil {
			return fmt.Errorf("make the database %s: %w", o.database, err)
		}
	}
	if err := os.Rename(fresh, o.data); err != nil { //nolint:gosec // whoever starts the container names the folder
		return fmt.Errorf("put the database cluster in its place: %w", err)
	}
	return nil
}

// open lets the whole network ask for a connection; initdb lets this host alone.
func (o *options) open(data string) error {
	file, err := os.OpenFile(filepath.Join(data, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0) //nolint:gosec // whoever starts the container names the folder
	if err != nil {
		return fmt.Errorf("open the server to the network: %w", err)
	}
	_, err = fmt.Fprintf(file, "host all all all %s\n", o.method())
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("open the server to the network: %w", err)
	}
	return nil
}

func run(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
