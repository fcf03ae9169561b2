package poolcheck

func (f *Facts) program() Check {
	program := f.Target.Profile.ProgramID
	c := Check{Name: CheckProgram, State: OK, Subject: program.String(), Expected: "an executable program"}
	a, read := f.Accounts[program]
	switch {
	case !read:
		return f.unreadCheck(c)
	case a == nil:
		c.Found = "no account"
	case !a.Executable:
		c.Found = "an account that is not executable"
	default:
		c.Found = "an executable program"
		return c
	}
	c.State, c.Reason = Failed, ReasonProgramMissing
	c.Remedy = "check the program id, and that the RPC endpoint is of the cluster on which the program is deployed"
	return c
}
