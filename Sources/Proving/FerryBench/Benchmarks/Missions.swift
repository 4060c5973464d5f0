import FerryLaboratory
import Foundation

extension Benchmark {
  /// A device's work with missions, against the best downloader available.
  static let missions = Benchmark(
    name: "missions",
    summary: "Missions published and downloaded: one file of 1 GiB, and 10,000 small items."
  ) { context in
    let place = try await MissionPlace.make()
    let size = context.size(1 << 30, quick: 256 << 20)
    let large = LargeMission(
      place: place, context: context, size: size,
      path: try place.makeLarge("large", bytes: size))
    var measurements = try await large.publishing()
    let downloads = try await large.downloading()
    measurements += downloads.measurements
    measurements += [try await large.pausing(), try await large.killing()]
    let small = try await manySmall(place, context)
    measurements += small.measurements
    let server = try ProcessFigures.read(place.daemon.processID)
    try await place.daemon.stop()
    return measurements + [
      Measurement(
        name: "memory of ferry mission download",
        figure: Amount(Double(max(downloads.peak, small.peak)), .bytes),
        target: .atMost(Double(64 << 20)),
        notes: [
          "\(Amount(Double(downloads.peak), .bytes).text) for the large file, "
            + "\(Amount(Double(small.peak), .bytes).text) for the small items"
        ]),
      Measurement(
        name: "memory of ferryd during downloads",
        figure: Amount(Double(server.peakResident), .bytes),
        target: .atMost(Double(64 << 20))),
    ]
  }

  private static func manySmall(
    _ place: MissionPlace, _ context: BenchmarkContext
  ) async throws -> (measurements: [Measurement], peak: Int) {
    let count = context.size(10_000, quick: 1_000)
    let bytes = try place.makeSmall("small", files: count)
    context.begin("missions: small items", "steps", total: 2)
    let published = try await place.publish("small", as: "small")
    context.advance()
    let downloaded = try await place.download("small")
    context.advance()
    try await place.run("mission", "verify", "small")
    return (
      [
        Measurement(
          name: "\(count) items of 1 to 20 KiB downloaded",
          figure: Amount(Double(count) / downloaded.seconds, .perSecond("items")),
          notes: [
            "\(Amount(Double(bytes), .bytes).text) in \(downloaded.seconds.rounded(to: 1)) s",
            "published in \(published.seconds.rounded(to: 1)) s, with "
              + "\(Amount(Double(published.peakResident), .bytes).text)",
          ])
      ], downloaded.peakResident
    )
  }
}

/// One large file as a mission.
struct LargeMission {
  static let id = "large"

  let place: MissionPlace
  let context: BenchmarkContext
  /// Bytes.
  let size: Int
  /// Where the file is until it has been published.
  let path: String

  private var megabytes: Double { Double(size) / 1e6 }

  private func name(_ what: String) -> String {
    "a mission of \(Amount(Double(size), .bytes).text) \(what)"
  }

  // MARK: Publishing

  /// Publishes from a folder to a new store, each time, against hashing alone, and against copying
  /// alone.
  func publishing() async throws -> [Measurement] {
    let contest = Contest(rounds: context.size(5, quick: 1), context: context)
    context.begin("missions: publishing", "rounds", total: contest.steps(contestants: 3))
    let openssl = URL(filePath: "/usr/bin/openssl")
    let rates = try await contest.medians([
      {
        let store = try await place.makeStore("store")
        let published = try await place.publish("large", as: Self.id, on: store)
        try place.remove(file: "store")
        return megabytes / published.seconds
      },
      {
        megabytes
          / (try await MeasuredProcess.run(openssl, ["dgst", "-sha256", path])).seconds
      },
      {
        let copy = place.directory.file("copy").path
        let words = ["if=\(path)", "of=\(copy)", "bs=1M", "conv=fsync", "status=none"]
        let copied = try await MeasuredProcess.run(URL(filePath: "/usr/bin/dd"), words)
        try place.remove(file: "copy")
        return megabytes / copied.seconds
      },
    ])
    _ = try await place.publish("large", as: Self.id)
    try place.remove(file: "large")
    return [
      Measurement(
        name: name("published"), figure: Amount(rates[0], .perSecond("MB")),
        raw: Amount(rates[1], .perSecond("MB")),
        notes: [
          "hashed, copied and written to the disk, against `openssl dgst -sha256` alone; "
            + "`dd conv=fsync` alone reaches \(Amount(rates[2], .perSecond("MB")).text)"
        ])
    ]
  }

  // MARK: Downloading

  /// Downloads from the server to the disk, checked, against aria2c on the same content.
  func downloading() async throws -> (measurements: [Measurement], peak: Int) {
    let places = ["/usr/bin/aria2c", "/usr/local/bin/aria2c"]
    let aria = places.first(where: { access($0, X_OK) == 0 })
    let hash = try await contentHash()
    var peaks: [Int] = []
    var contestants: [Contest.Contestant] = [
      {
        let downloaded = try await place.download(Self.id)
        peaks.append(downloaded.peakResident)
        try await place.remove(Self.id)
        return megabytes / downloaded.seconds
      }
    ]
    if let aria {
      for check in [["--checksum=sha-256=\(hash)"], []] {
        contestants.append {
          let seconds = try await fetch(hash, with: URL(filePath: aria), check)
          try place.remove(file: "aria2")
          return megabytes / seconds
        }
      }
    }
    let contest = Contest(rounds: context.size(5, quick: 1), context: context)
    context.begin(
      "missions: downloading", "rounds", total: contest.steps(contestants: contestants.count))
    let rates = try await contest.medians(contestants)
    let unchecked = aria.map { _ in
      "aria2c -x4 --checksum does not flush to the disk; without checks it reaches "
        + Amount(rates[2], .perSecond("MB")).text
    }
    return (
      [
        Measurement(
          name: name("downloaded"), figure: Amount(rates[0], .perSecond("MB")),
          raw: aria.map { _ in Amount(rates[1], .perSecond("MB")) },
          target: aria.map { _ in Target.ratioAtLeast(0.9) },
          notes: [
            "each chunk and the whole file verified and flushed to the disk",
            unchecked ?? "aria2c is not installed",
          ])
      ], peaks.max() ?? 0
    )
  }

  /// Returns the server's name of the content, from the device's report after a first download.
  private func contentHash() async throws -> String {
    try await place.run("pull")
    _ = try await place.download(Self.id)
    let shown = try place.start("show", Self.id)
    guard try await shown.exitStatus(within: .seconds(30)) == .exited(0),
      let start = shown.output.range(of: "\"sha256\":\"")
    else { throw BenchError("ferry mission show failed: \(shown.error)") }
    try await place.remove(Self.id)
    return String(shown.output[start.upperBound...].prefix(64))
  }

  private func fetch(_ hash: String, with aria: URL, _ check: [String]) async throws -> Double {
    let words = [
      "--quiet", "--max-connection-per-server=4", "--split=4", "--min-split-size=1M",
      "--file-allocation=none", "--dir=\(place.directory.file("aria2").path)", "--out=large.bin",
      "\(place.daemon.url)/v1/blobs/\(hash)",
    ]
    return try await MeasuredProcess.run(aria, check + words).seconds
  }

  // MARK: Interrupting

  /// Measures the time from the start of `ferry mission pause` until the downloading process
  /// reports the pause.
  func pausing() async throws -> Measurement {
    let tries = context.size(40, quick: 5)
    context.begin("missions: pausing", "tries", total: tries)
    var (times, ends) = ([Double](), [Double]())
    var word = "download"
    while times.count < tries {
      try Task.checkCancellation()
      let run = try place.start(word, Self.id)
      // If all content has arrived meanwhile, there is nothing to wait for, or to pause.
      let hasBegun = try? await run.line(within: .seconds(60)) {
        $0.contains("\"event\":\"progress\"") && !$0.contains("\"bytesFetched\":0,")
      }
      let watch = Stopwatch()
      async let pause: Void = place.run("mission", "pause", Self.id)
      let rests = try? await run.line { $0.contains("\"state\":\"paused\"") }
      let time = watch.milliseconds
      _ = try? await pause
      if hasBegun != nil, rests != nil {
        times.append(time)
        _ = try await run.exitStatus(within: .seconds(60))
        ends.append(watch.milliseconds)
        context.advance()
        word = "resume"
      } else {
        _ = try await run.exitStatus(within: .seconds(60))
        try await place.remove(Self.id)
        word = "download"
      }
    }
    try await place.remove(Self.id)
    return Measurement(
      name: "a mission paused by another process, p99",
      figure: Amount(times.percentile(99), .milliseconds), target: .atMost(200),
      notes: [
        "p50 \(times.percentile(50).rounded(to: 1)) ms of \(tries) at full speed, from the start of "
          + "`ferry mission pause`",
        "the process that downloaded has ended after p50 \(ends.percentile(50).rounded(to: 1)) ms, "
          + "p99 \(ends.percentile(99).rounded(to: 1)) ms",
      ])
  }

  /// Measures the bytes read by a device in total if a download is killed again and again, at full
  /// speed.
  func killing() async throws -> Measurement {
    let kills = context.size(20, quick: 5)
    context.begin("missions: killing", "lives", total: kills + 1)
    guard let port = URL(string: place.daemon.url)?.port.flatMap({ UInt16(exactly: $0) }) else {
      throw BenchError("no port in \(place.daemon.url)")
    }
    let proxy = try TCPProxy(to: port)
    let device = "killed.db"
    try await place.join(device, at: proxy.url)
    try await place.run("pull", on: device)
    var read = 0
    for _ in 0..<kills {
      read += try await life(device, proxy, until: size / (kills + 1))
      context.advance()
    }
    let before = proxy.byteCount(.answer)
    try await place.run("mission", "download", Self.id, on: device)
    read += proxy.byteCount(.answer) - before
    try await place.run("mission", "verify", Self.id, on: device)
    try await place.remove(Self.id, on: device)
    context.advance()
    let twice = Double(read - size)
    return Measurement(
      name: "fetched again, \(kills) kills of \(Amount(Double(size), .bytes).text)",
      figure: Amount(twice / Double(size) * 100, .percent), target: .atMost(1),
      notes: [
        "\(Amount(twice / Double(kills), .bytes).text) a kill, counted at the sockets of the "
          + "processes, with catalogue and headers"
      ])
  }

  /// Downloads until so many bytes have come, and kills the process. Returns the bytes read by the
  /// process.
  private func life(_ device: String, _ proxy: TCPProxy, until bytes: Int) async throws -> Int {
    let before = proxy.byteCount(.answer)
    let trap = proxy.trap(.answer, of: "/v1/blobs/", after: bytes, .tell)
    let run = try place.start("download", Self.id, on: device)
    try await trap.sprung()
    try await run.freeze()
    let read = try await proxy.readByteCountAtRest()
    run.send(SIGKILL)
    _ = try await run.exitStatus(within: .seconds(30))
    while proxy.connectionCount > 0 { try await Task.sleep(for: .milliseconds(1)) }
    return read - before
  }
}
