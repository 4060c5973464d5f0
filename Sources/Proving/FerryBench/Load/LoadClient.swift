import FerryNetworking
import FerryProtocol

/// A client of ferryd over HTTP with as little own work as can be.
struct LoadClient: Sendable {
  private let base: String
  private let transport = SystemTransport()

  init(_ daemon: Daemon) { base = daemon.url }

  /// Makes a space.
  @discardableResult
  func makeSpace(_ space: String) async throws -> SpaceInfo {
    let answer = try await transport.send(TransportRequest(.put, address(space, "")))
    try check(answer)
    return try SpaceInfo(decoding: answer.body)
  }

  /// Sends a packet; returns when it is committed.
  func send(_ packet: [UInt8], to space: String) async throws {
    var request = TransportRequest(.post, address(space, "/packets"), body: packet)
    request.headers.add("Content-Type", "application/json")
    let answer = try await transport.send(request)
    guard answer.status == 200 else { throw unexpected(answer) }
  }

  /// Sends each device's packets one after another, the devices beside each other.
  func send(_ devices: [(space: String, packets: [[UInt8]])]) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (space, packets) in devices {
        group.addTask { for packet in packets { try await send(packet, to: space) } }
      }
      try await group.waitForAll()
    }
  }

  /// Fills a space with records, `packet` operations at a time from four devices.
  func fill(
    _ space: String, records: Int, packet: Int = 1_000, seed: UInt64 = 1,
    each: @escaping @Sendable () -> Void
  ) async throws {
    let devices = 4
    try await withThrowingTaskGroup(of: Void.self) { group in
      for device in 0..<devices {
        group.addTask {
          var load = DeviceLoad(seed: seed + UInt64(device))
          for number in stride(from: device, to: records / packet, by: devices) where number >= 0 {
            try await send(load.packet(of: packet).encoded(), to: space)
            each()
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Pulls everything as a new device does, page by page, and only reads the pages' heads. Returns
  /// the number of changes and of bytes.
  func pullAll(
    from space: String, page: Int, compressed: Bool
  ) async throws -> (changes: Int, bytes: Int) {
    var cursor: Cursor?
    var (changes, bytes) = (0, 0)
    while true {
      let from = cursor.map { "&cursor=\($0)" } ?? ""
      var request = TransportRequest(.get, address(space, "/changes?limit=\(page)\(from)"))
      if !compressed { request.headers.add("Accept-Encoding", "identity") }
      let answer = try await transport.send(request)
      try check(answer)
      let head = try PageReader.head(of: answer.body)
      changes += head.count
      bytes += answer.body.count
      guard head.more else { return (changes, bytes) }
      cursor = head.cursor
    }
  }

  /// Returns the work of the server's pruner since the start, in finished runs. It is the deleted
  /// operations, and the rows with disk space not released yet.
  func pruned() async throws -> (operations: Int, unreclaimed: Int) {
    (
      try await metric("ferry_pruned_rows_total{kind=\"operation\"}"),
      try await metric("ferry_prune_unreclaimed_rows")
    )
  }

  /// Returns a value of the server's metrics, by name with labels.
  func metric(_ name: String) async throws -> Int {
    let answer = try await transport.send(TransportRequest(.get, "\(base)/metrics"))
    try check(answer)
    let lines = String(decoding: answer.body, as: UTF8.self).split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix(name + " ") }),
      let value = Double(line.dropFirst(name.count + 1))
    else { throw BenchError("the metrics do not contain \(name)") }
    return Int(value)
  }

  private func address(_ space: String, _ path: String) -> String {
    "\(base)/v1/spaces/\(space)\(path)"
  }

  private func check(_ answer: TransportResponse) throws {
    guard answer.isSuccess else { throw unexpected(answer) }
  }

  private func unexpected(_ answer: TransportResponse) -> BenchError {
    let text = String(decoding: answer.body.prefix(400), as: UTF8.self)
    return BenchError("ferryd answered \(answer.status): \(text)")
  }
}
