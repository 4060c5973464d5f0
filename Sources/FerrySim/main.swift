import CommandLineKit
import Simulation

World.dedicateProcess()
await CommandRunner.main(SimCommand.specification)
