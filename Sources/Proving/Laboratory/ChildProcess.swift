import Foundation

/// A running program whose output is captured as it comes.
///
/// It is killed when this object is released, and when the test process dies for any reason.
package final class ChildProcess: CapturedProcess {
  /// The end of a program.
  package enum ExitStatus: Sendable, Equatable {
    case exited(Int32)
    case killed(signal: Int32)
  }

  /// Where a line was printed.
  package enum Stream: Sendable { case output, error }

  /// All results of a program.
  package struct Finished: Sendable {
    package let status: ExitStatus
    package let output: String
    package let error: String
  }

  package let processID: Int32
  private let capture: ChildCapture

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - environment: Variables to add to ``ChildEnvironment``.
  ///   - directory: The working directory; the test's own by default.
  ///   - input: The whole standard input.
  package init(
    _ executable: URL, _ arguments: [String] = [], environment: [String: String] = [:],
    directory: URL? = nil, input: String = ""
  ) throws {
    let (outputPipe, errorPipe) = (try PipeEnds.open(), try PipeEnds.open())
    let inputFile = try Self.file(holding: input)
    defer {
      for descriptor in [outputPipe.writer, errorPipe.writer, inputFile] { close(descriptor) }
    }
    do {
      processID = try ProcessSpawner.spawn(
        SpawnRequest(
          executable: executable.path, arguments: arguments, environment: environment,
          directory: directory?.path, input: inputFile, output: outputPipe.writer,
          error: errorPipe.writer))
    } catch {
      for descriptor in [outputPipe.reader, errorPipe.reader] { close(descriptor) }
      throw error
    }
    capture = ChildCapture(processID, name: executable.lastPathComponent)
    capture.start(output: outputPipe.reader, error: errorPipe.reader)
  }

  deinit { capture.signal(SIGKILL) }

  /// Runs a program to the end.
  package static func run(
    _ executable: URL, _ arguments: [String] = [], environment: [String: String] = [:],
    directory: URL? = nil, input: String = "", within limit: Duration = .hangLimit
  ) async throws -> Finished {
    let child = try ChildProcess(
      executable, arguments, environment: environment, directory: directory, input: input)
    let status = try await child.exitStatus(within: limit)
    return Finished(status: status, output: child.output, error: child.error)
  }

  /// The output so far.
  package var output: String { capture.text(.output) }
  package var error: String { capture.text(.error) }

  /// Lines it has printed so far, for `line(after:)`.
  package var lineCount: Int { capture.lineCount }

  /// The exit status, once there is one.
  package var endedWith: ExitStatus? { capture.endedWith }

  package var endReport: String? { capture.endReport }

  /// Waits for a line on either stream, among those printed already too.
  ///
  /// Throws as soon as the program has ended without it, or when the time is over; the message
  /// contains the output. `predicate` must not use this object. It does not wait for a program
  /// started by the ended one, even if that program holds the streams.
  package func line(
    after first: Int = 0, within limit: Duration = .hangLimit,
    where predicate: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await capture.line(after: first, within: limit, where: predicate)
  }

  /// Waits for the end of the program and of the output.
  package func exitStatus(within limit: Duration = .hangLimit) async throws -> ExitStatus {
    try await capture.exitStatus(within: limit)
  }

  /// Sends a signal (SIGTERM, SIGKILL, SIGSTOP, SIGCONT …); has no effect after the end.
  package func send(_ signal: Int32) { capture.signal(signal) }

  /// Returns an open file without a name, so no writer has to wait for the reader.
  private static func file(holding text: String) throws -> Int32 {
    let scratch = try TemporaryDirectory()
    let path = scratch.file("input").path
    try Data(text.utf8).write(to: URL(filePath: path))
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw TestSupportError.posix("cannot open \(path)") }
    return descriptor
  }
}

/// The two ends of a pipe not inherited by other children.
enum PipeEnds {
  static func open() throws -> (reader: Int32, writer: Int32) {
    try ProcessSpawner.withoutSpawning {
      var ends: [Int32] = [-1, -1]
      guard pipe(&ends) == 0 else { throw TestSupportError.posix("cannot make a pipe") }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      return (ends[0], ends[1])
    }
  }
}
