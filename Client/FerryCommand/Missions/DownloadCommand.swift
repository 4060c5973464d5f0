import Ferry
import FerryCommandLine
import FerryNetworking
import FerryPlatform
import Foundation

/// `ferry download`: one file, verified.
enum DownloadCommand {
  static let download = CommandSpec(
    "download", summary: "Download a file from any server, and continue an interrupted download.",
    discussion: """
      The file appears at PATH when it is complete. Until then its fetched part is in \
      PATH.ferry-part, and the state of the download in PATH.ferry-queue. A second run of the same \
      command continues it by range, also after `kill -9`. If the file on the server has changed \
      meanwhile, it starts from scratch. Without a connection it gives up after a while with \
      status 3, and the fetched part is kept. No replica is needed.
      """,
    options: [
      OptionSpec(
        "sha256", value: "HEX", help: "The SHA-256 that the file must have, 64 hexadecimal digits."),
      MissionDownload.limitRate, MissionDownload.patience, MissionDownload.timeout,
    ],
    flags: [
      FlagSpec("force", short: "f", help: "Replace a present file."),
      FlagSpec("watch", short: "w", help: "Wait without a limit for a connection."),
    ],
    arguments: [
      ArgumentSpec("URL", help: "The address, http:// or https://."),
      ArgumentSpec(
        "PATH", help: "The file, or a folder; by default the address's last part.",
        arity: .optional),
    ],
    examples: [
      ExampleSpec(
        "Fetch a file slowly, and check it",
        "ferry download https://example.org/film.mp4 --limit-rate 1MiB --sha256 \"$SUM\"")
    ]
  ) { arguments in
    let task = try DownloadTask(arguments)
    if try task.isHereAlready() { return .done }
    var configuration = try FerryCommand.network(arguments)
    configuration.bandwidth = BandwidthLimits(receiving: try task.rate())
    var options = DownloadQueueOptions()
    options.silence = try MissionDownload.silence(arguments)
    options.startsAtOnce = false
    let queue = try await DownloadQueue.open(
      task.queuePath, options: options,
      transport: SystemTransport(configuration: configuration))
    let display = DownloadDisplay(label: task.name, asJSON: arguments.flag("json"))
    do {
      let download = try await task.download(in: queue)
      let patience: Duration? = arguments.flag("watch") ? nil : try arguments.duration("wait")
      let file = try await watch(download, display, patience)
      display.finish()
      await queue.close()
      task.removeQueue()
      try task.report(file, fetched: download.status.progress.bytesFetched)
      return .done
    } catch {
      display.finish()
      let isOver = await !queue.downloads.contains { !$0.state.isFinal }
      await queue.close()
      if isOver { task.removeQueue() }
      throw error
    }
  }

  /// Shows the download until it has ended or rests.
  private static func watch(
    _ download: Download, _ display: DownloadDisplay, _ patience: Duration?
  ) async throws -> DownloadedFile {
    try await withThrowingTaskGroup(of: DownloadedFile?.self) { group in
      group.addTask {
        for await status in download.updates() {
          display.show(status)
          if status.state == .paused { throw status.reason ?? .unfinished }
        }
        return try await download.finished()
      }
      if let patience {
        group.addTask {
          while true {
            try await Task.sleep(for: .milliseconds(100))
            if let reason = display.reason(after: patience) { throw reason }
          }
        }
      }
      defer { group.cancelAll() }
      while let file = try await group.next() { if let file { return file } }
      throw CancellationError()
    }
  }
}

extension DownloadError {
  fileprivate static let unfinished = DownloadError(.cancelled, "the download was paused")
}

/// The command line of a download.
private struct DownloadTask {
  let url: String
  let path: String
  let hash: ContentHash?
  let arguments: ParsedArguments

  var queuePath: String { "\(path).ferry-queue" }
  var name: String { URL(fileURLWithPath: path).lastPathComponent }

  init(_ arguments: ParsedArguments) throws {
    self.arguments = arguments
    let url = try arguments.string("URL")
    self.url = url
    guard WebAddress.isOne(url) else {
      throw UsageError(
        .invalidValue, "'\(url)' is not a web address", why: "it has no http:// or https://",
        next: "give the whole address")
    }
    do throws(TransportError) { _ = try RequestAddress(url) } catch {
      throw UsageError(
        .invalidValue, "'\(url)' is not a web address", why: error.message,
        next: "give the whole address, with blanks as %20")
    }
    if let text = arguments.stringIfPresent("sha256") {
      guard let hash = ContentHash(text.lowercasedASCII) else {
        throw UsageError(
          .invalidValue, "'\(text)' is not a SHA-256", why: "it has 64 hexadecimal digits",
          next: "give the checksum that the file's publisher names")
      }
      self.hash = hash
    } else {
      hash = nil
    }
    let given = arguments.stringIfPresent("PATH")
    if let given, WebAddress.isOne(given) {
      throw UsageError(
        .unexpectedValue, "'\(given)' is a second address", why: "one command downloads one file",
        next: "run `ferry download` for each address; a file with such a name is ./\(given)")
    }
    path = Self.path(given, url)
  }

  /// Returns the absolute path of the file.
  private static func path(_ given: String?, _ url: String) -> String {
    let given = given ?? "."
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: given, isDirectory: &isFolder)
    let isNamed = !given.ends(with: "/") && !(exists && isFolder.boolValue)
    return FileAccess.wholePath(isNamed ? given : "\(given)/\(fileName(url))")
  }

  /// Returns the last part of the address's path, as a name of a file.
  private static func fileName(_ url: String) -> String {
    // The first two parts are the scheme and the host.
    let parts = url.until("?", "#").words(at: "/").dropFirst(2)
    let name = parts.last.map { String($0).removingPercentEncoding ?? String($0) } ?? ""
    let isUsable =
      !name.isEmpty && name != "." && name != ".." && name.utf8.count <= 200
      && !name.unicodeScalars.contains { $0.value < 0x20 || $0 == "/" || $0.value == 0x7F }
    return isUsable ? name : "download"
  }

  func rate() throws -> Int? {
    let rate = try arguments.byteSizeIfPresent("limit-rate")
    guard rate != 0 else {
      throw UsageError(
        .invalidValue, "the rate 0 would stop every download", why: "--limit-rate is 0",
        next: "give a rate such as 512KiB, or omit --limit-rate for full speed")
    }
    return rate
  }

  /// Returns true if the file is complete already, and reports it. Rejects another present file.
  func isHereAlready() throws -> Bool {
    guard FileAccess.exists(path), !FileAccess.exists(queuePath), !arguments.flag("force") else {
      return false
    }
    if let hash, try ContentHash(ofFile: path) == hash {
      let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber
      try report(DownloadedFile(path: path, size: size?.int64Value ?? 0, hash: hash), fetched: 0)
      return true
    }
    throw CommandFailure(
      "\(path) exists", why: "a download does not replace a file without a request",
      next: "name another PATH, or add --force", status: .usage, code: "download_exists")
  }

  /// Returns the download of an earlier run, or adds one.
  func download(in queue: DownloadQueue) async throws -> Download {
    for former in await queue.downloads {
      if former.url == url, former.hash == hash, former.path == path, former.state != .failed {
        if former.state == .paused { try await former.resume() }
        await queue.start()
        return former
      }
      try await queue.remove(former)
    }
    let download = Download(url, to: path, hash: hash)
    try await queue.add(download)
    return download
  }

  func removeQueue() { try? FileManager.default.removeItem(atPath: queuePath) }

  func report(_ file: DownloadedFile, fetched: Int64) throws {
    let hash = file.hash?.description
    guard arguments.flag("json") else {
      let size = ByteSize(bytes: Int(file.size)).text
      let sum = hash.map { ", SHA-256 \($0)" } ?? ""
      return try TextOutput.standardOutput.line(
        file.path.escapedForTerminal + ": \(size)\(sum)")
    }
    try TextOutput.standardOutput.line(
      JSONText.object([
        ("event", .string("done")), ("path", .string(file.path)), ("bytes", .int(file.size)),
        ("bytesFetched", .int(fetched)), ("sha256", .string(orNull: hash)),
      ]).text)
  }
}
