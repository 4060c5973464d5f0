// A to-do app for terminals: ferry-tasks FILE [SERVER SPACE]
import Foundation

let arguments = Array(CommandLine.arguments.dropFirst())
guard [1, 3].contains(arguments.count) else {
  print("usage: ferry-tasks FILE [SERVER SPACE]\n\n\(Session.help)")
  exit(64)
}
do {
  let server = arguments.count == 3 ? (url: arguments[1], space: arguments[2]) : nil
  // The replica stores the user's token, so a later start needs none.
  let token = ProcessInfo.processInfo.environment["FERRY_TOKEN"]
  let store = try await TaskStore(arguments[0], server: server, token: token)
  let session = Session(store, isTerminal: isatty(1) == 1)
  // The keyboard blocks a thread of its own, so that the live view goes on.
  let (lines, typed) = AsyncStream<String>.makeStream()
  Thread.detachNewThread {
    while let line = readLine() { typed.yield(line) }
    typed.finish()
  }
  for await line in lines {
    guard await session.run(line) else { break }
  }
  await store.close()
} catch {
  print("ferry-tasks: \(error.localizedDescription)")
  exit(1)
}
