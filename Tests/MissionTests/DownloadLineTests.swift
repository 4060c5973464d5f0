import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("The line of downloads", .hangLimit)
struct DownloadLineTests {
  private typealias Entry = DownloadLine.Entry
  private var line = DownloadLine(limit: 2)

  private func entry(
    _ id: DownloadID, _ number: Int64, priority: Int = 0, after: [DownloadID] = []
  ) -> Entry { Entry(id: id, priority: priority, number: number, after: after) }

  private func started(_ effects: [DownloadLine.Effect]) -> [DownloadID] {
    effects.compactMap { if case .start(let id) = $0 { id } else { nil } }
  }

  @Test("as many start as the limit allows, by priority and then by order")
  mutating func order() {
    let added = (1...4).map { entry(DownloadID("\($0)"), $0, priority: $0 == 4 ? 1 : 0) }
    #expect(started(line.handle(.added(added))) == ["4", "1"])
    #expect(started(line.handle(.prioritise("3", 5))) == [])
    #expect(started(line.handle(.ended("4", .done))) == ["3"])
    #expect(started(line.handle(.limit(3))) == ["2"])
  }

  @Test("a download starts after those that it waits for, and fails with them")
  mutating func dependencies() {
    let effects = line.handle(
      .added([entry("a", 1), entry("b", 2, after: ["a"]), entry("c", 3, after: ["b"])]))
    #expect(started(effects) == ["a"])
    #expect(line["b"]?.reason?.kind == .waiting)
    #expect(started(line.handle(.ended("a", .done))) == ["b"])
    _ = line.handle(.ended("b", .failed(DownloadError(.server(404), "gone"))))
    #expect(line["c"]?.state == .failed)
    #expect(line["c"]?.reason?.kind == .dependency)
    #expect(line["c"]?.reason?.message.contains("gone") == true)
  }

  @Test("a finished download counts as done after its removal, an unfinished one does not")
  mutating func removal() {
    line = DownloadLine(limit: 1)
    _ = line.handle(.added([entry("a", 1), entry("b", 2, after: ["a", "c"]), entry("c", 3)]))
    #expect(started(line.handle(.ended("a", .done))) == ["c"])
    #expect(line.followers(of: "a") == ["b": ["c"]])
    #expect(line.handle(.removed("a")).isEmpty)
    #expect(line["b"]?.state == .ready)
    #expect(line["b"]?.after == ["c"])
    #expect(started(line.handle(.ended("c", .done))) == ["b"])
    #expect(line.fault(adding: [entry("d", 4, after: ["a"])])?.kind == .dependency)
    _ = line.handle(.added([entry("d", 4), entry("e", 5, after: ["d"])]))
    _ = line.handle(.cancel("d"))
    _ = line.handle(.removed("d"))
    #expect(line["e"]?.state == .failed)
    _ = line.handle(.resume("e"))
    #expect(line["e"]?.state == .failed)
    #expect(line["e"]?.reason?.message.contains("removed before it was done") == true)
  }

  @Test("nothing starts before the line begins, and changes until then count")
  mutating func held() {
    line = DownloadLine(limit: 1, isHeld: true)
    _ = line.handle(.added([entry("a", 1), entry("b", 2, after: ["a"]), entry("c", 3)]))
    #expect(line.handle(.cancel("a")).contains(.changed("a", .cancelled, nil)))
    #expect(line["b"]?.reason?.kind == .dependency)
    #expect(started(line.handle(.begin)) == ["c"])
  }

  @Test("unknown predecessors and cycles are refused")
  mutating func faults() {
    _ = line.handle(.added([entry("a", 1)]))
    #expect(line.fault(adding: [entry("b", 2, after: ["a"])]) == nil)
    #expect(line.fault(adding: [entry("b", 2, after: ["x"])])?.kind == .dependency)
    #expect(line.fault(adding: [entry("b", 2, after: ["b"])])?.message.contains("cycle") == true)
    let circle = [entry("b", 2, after: ["c"]), entry("c", 3, after: ["d"])]
    let closed = circle + [entry("d", 4, after: ["b"])]
    #expect(line.fault(adding: closed)?.message.contains("cycle") == true)
    #expect(line.fault(adding: circle + [entry("d", 4, after: ["a"])]) == nil)
    #expect(line.fault(adding: [entry("a", 2)])?.kind == .dependency)
  }

  @Test("a failed attempt gives its turn to another until its pause is over")
  mutating func rests() {
    line = DownloadLine(limit: 1)
    _ = line.handle(.added([entry("a", 1), entry("b", 2)]))
    let reason = DownloadError(.offline, "no connection")
    #expect(started(line.handle(.ended("a", .rests(reason)))) == ["b"])
    #expect(line["a"]?.state == .ready)
    #expect(line["a"]?.reason == reason)
    #expect(started(line.handle(.rested("a"))) == [])
    #expect(started(line.handle(.ended("b", .done))) == ["a"])
    #expect(line["a"]?.reason == nil)
  }

  @Test("a pause and a cancellation stop the work, and outlast its end")
  mutating func stops() {
    _ = line.handle(.added([entry("a", 1), entry("b", 2), entry("c", 3)]))
    #expect(line.handle(.pause("a")).contains(.stop("a")))
    #expect(line.handle(.cancel("b")).contains(.stop("b")))
    #expect(started(line.handle(.ended("a", .stopped))) == ["c"])
    _ = line.handle(.ended("b", .failed(DownloadError(.offline, "late"))))
    #expect(line["a"]?.state == .paused)
    #expect(line["b"]?.state == .cancelled)
    #expect(started(line.handle(.resume("a"))) == ["a"])
    _ = line.handle(.resume("b"))
    #expect(line["b"]?.state == .cancelled)
    // The content was complete before the cancellation took effect.
    _ = line.handle(.cancel("c"))
    _ = line.handle(.ended("c", .done))
    #expect(line["c"]?.state == .done)
  }

  @Test("a resumed download waits for the end of its stopped work")
  mutating func resumed() {
    _ = line.handle(.added([entry("a", 1)]))
    _ = line.handle(.pause("a"))
    #expect(started(line.handle(.resume("a"))) == [])
    #expect(started(line.handle(.ended("a", .stopped))) == ["a"])
  }

  @Test("a failed download is tried again on request")
  mutating func again() {
    _ = line.handle(.added([entry("a", 1)]))
    _ = line.handle(.ended("a", .failed(DownloadError(.server(404), "gone"))))
    #expect(started(line.handle(.resume("a"))) == ["a"])
  }

  @Test("a download that waited for another one no longer reports that when it waits for its turn")
  mutating func freed() {
    line = DownloadLine(limit: 1)
    _ = line.handle(.added([entry("a", 1), entry("b", 2), entry("c", 3, after: ["a"])]))
    #expect(line["c"]?.reason?.kind == .waiting)
    #expect(started(line.handle(.ended("a", .done))) == ["b"])
    #expect(line["c"]?.reason == nil)
    #expect(started(line.handle(.ended("b", .done))) == ["c"])
  }

  @Test("ten thousand downloads take their turns in order, each event at the cost of a few")
  mutating func many() {
    let count: Int64 = 10_000
    let added = (1...count).map { number in
      let after = number % 10 == 0 ? [DownloadID("\(number - 1)")] : []
      return entry(DownloadID("\(number)"), number, priority: Int(number % 3), after: after)
    }
    var running = started(line.handle(.added(added)))
    var order: [DownloadID] = []
    while let id = running.first {
      order.append(id)
      running.removeFirst()
      running += started(line.handle(.ended(id, .done)))
    }
    #expect(order.count == Int(count))
    let places = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0) })
    for entry in added {
      for first in entry.after { #expect(places[first] ?? .max < places[entry.id] ?? 0) }
    }
    #expect(order.prefix(2) == ["2", "5"])
  }

  @Test("a turn leaves the list once, wherever it is")
  func turns() {
    var list = TurnList()
    let turns = (0..<50).map { number in
      TurnList.Turn(
        priority: number * 7 % 5, number: Int64(number), id: DownloadID("\(number)"))
    }
    for turn in turns { list.insert(turn) }
    let removed = Set(stride(from: 0, to: 50, by: 3))
    for place in removed {
      list.remove(turns[place])
      list.remove(turns[place])
    }
    let rest = turns.indices.filter { !removed.contains($0) }.map { turns[$0] }.sorted()
    for turn in rest { #expect(list.next() == turn.id) }
    #expect(list.next() == nil)
  }
}
