import FerryTestSupport
import Testing

@testable import FerryPersistence

/// The admission of work on a file that may be suspended or closed.
@Suite("The gate of a file's work", .hangLimit)
struct WorkGateTests {
  @Test("a closed file stays closed, and only a suspended one resumes")
  func admission() {
    typealias Step = @Sendable (inout WorkAdmission) -> Bool
    let (suspend, resume): (Step, Step) = ({ $0.suspend() }, { $0.resume() })
    let close: Step = { $0.close() }
    // Each step with the effect, and the refusal after it.
    let story: [(step: Step, hasEffect: Bool, refusal: StoppedWork?)] = [
      (resume, false, nil), (suspend, true, .suspended), (suspend, false, .suspended),
      (resume, true, nil), (suspend, true, .suspended), (close, false, .closed),
      (resume, false, .closed), (suspend, false, .closed), (close, false, .closed),
    ]
    var admission = WorkAdmission()
    for (number, (step, hasEffect, refusal)) in story.enumerated() {
      let effect = step(&admission)
      #expect(effect == hasEffect, "step \(number)")
      #expect(admission.refusal == refusal, "step \(number)")
    }
    var open = WorkAdmission()
    let endsWork = close(&open)
    #expect(endsWork && open.refusal == .closed)
  }

  /// Work that reports a begin, and lasts until it is cancelled.
  private static func endless(_ begun: AsyncStream<Void>.Continuation) async throws {
    begun.yield()
    let (never, end) = AsyncStream<Void>.makeStream()
    for await _ in never {}
    end.finish()
    try Task.checkCancellation()
  }

  @Test(
    "stopped work is cancelled with the reason, and its end is waited for",
    arguments: [true, false])
  func stopped(closing: Bool) async throws {
    let gate = WorkGate()
    let (begins, begun) = AsyncStream<Void>.makeStream()
    let work = Task { try await gate.whileOpen { try await Self.endless(begun) } }
    var next = begins.makeAsyncIterator()
    await next.next()
    let reason: StoppedWork = closing ? .closed : .suspended
    if closing { gate.close() } else { gate.suspend() }
    await gate.ended()
    await #expect(throws: reason) { try await work.value }
    await #expect(throws: reason) { try await gate.whileOpen {} }
    #expect(throws: reason) { try gate.check() }
    #expect(gate.isSuspended == !closing)
  }

  @Test("work that the caller cancels ends with its own error, and results pass")
  func ordinary() async throws {
    let gate = WorkGate()
    #expect(try await gate.whileOpen { 7 } == 7)
    await #expect(throws: DatabaseError.closed("x")) {
      try await gate.whileOpen { throw DatabaseError.closed("x") }
    }
    let (begins, begun) = AsyncStream<Void>.makeStream()
    let work = Task { try await gate.whileOpen { try await Self.endless(begun) } }
    var next = begins.makeAsyncIterator()
    await next.next()
    work.cancel()
    await #expect(throws: CancellationError.self) { try await work.value }
    await gate.ended()
  }

  @Test("work that waits begins after the resumption, and fails after the closing")
  func waiting() async throws {
    let gate = WorkGate()
    try await gate.opened()
    gate.suspend()
    let resumed = Task { try await gate.opened() }
    gate.resume()
    try await resumed.value
    gate.suspend()
    let cancelled = Task { try await gate.opened() }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    let closed = Task { try await gate.opened() }
    gate.close()
    await #expect(throws: StoppedWork.closed) { try await closed.value }
    await gate.ended()
  }
}
