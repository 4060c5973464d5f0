import FerryCommandLine

await CommandRunner.main(FerryCommand.specification) { failure, arguments in
  CommandHint.failure(failure, in: arguments.stringIfPresent("in"))
}
