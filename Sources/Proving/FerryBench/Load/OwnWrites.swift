import FerryLaboratory
import FerryNetworking
import FerryPlatform
import FerryProtocol
import FerrySyncClient
import Foundation
import Synchronization

/// One small write after another through the replica that pulls a first list.
enum OwnWrites {
  /// Pulls a list into a new replica. Returns the waits of the writes meanwhile.
  ///
  /// - Parameter isAtOnce: whether one transaction applies the list, as each later one.
  static func during(
    _ list: FirstPull, atOnce isAtOnce: Bool = false
  ) async throws -> SmallWrites.Waits {
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    var surroundings = ReplicaSurroundings.system
    if isAtOnce { surroundings.firstLists.changesMin = .max }
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: ListServer(pages: list.pages),
      in: surroundings)
    try await replica.write { database in
      try database.execute(TaskRow.creation())
      try database.execute(SmallWrites.creation)
    }
    try await replica.track(Name(TaskRow.table))
    try await replica.connect(to: "http://127.0.0.1:1", space: "bench")
    let isDone = CancellationFlag()
    let pull = Task {
      defer { isDone.set() }
      return try await replica.pull().pulled
    }
    var waits: [Double] = []
    while !isDone.isSet {
      let (watch, number) = (Stopwatch(), Int64(waits.count))
      try await replica.write {
        try $0.execute("INSERT INTO visits(at) VALUES (?)", [.integer(number)])
      }
      waits.append(watch.milliseconds)
      try await Task.sleep(for: .milliseconds(5))
    }
    let pulled = try await pull.value
    guard pulled == list.pages * 5_000 else { throw BenchError("applied \(pulled) changes") }
    return SmallWrites.Waits(
      writes: waits.count, median: waits.percentile(50), longest: waits.max() ?? 0)
  }
}

/// A server without a network that has one list of changes for one device.
private final class ListServer: Transport {
  private let list: Mutex<PulledPages>

  init(pages: Int) { list = Mutex(PulledPages(count: pages)) }

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    let page = request.url.contains("/changes") ? list.withLock { $0.next() } : nil
    return TransportResponse(
      status: 200, headers: ["Content-Type": "application/json"], body: page?.body ?? space())
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    throw TransportError(.offline, "no streams")
  }

  private func space() -> [UInt8] {
    guard let name = SpaceName("bench") else { return [] }
    return SpaceInfo(space: name, epoch: Epoch(1), head: 0, role: .writer, serverTime: 0).encoded()
  }
}
