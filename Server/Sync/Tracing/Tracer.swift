import FerryProtocol
import Synchronization

/// Begins the traces of exported requests.
package final class Tracer: Sendable {
  package struct Counts: Sendable, Equatable {
    /// Requests whose spans are exported.
    package var traced = 0
    /// Requests omitted because of the rate.
    package var limited = 0

    package init(traced: Int = 0, limited: Int = 0) {
      (self.traced, self.limited) = (traced, limited)
    }
  }

  private struct State {
    var sampler: TraceSampler
    var counts = Counts()
  }

  /// Spans of one request, the request's own included; further ones are dropped.
  package static let spansMax = 64

  package let exporter: SpanExporter
  private let state: Mutex<State>
  private let uptime: @Sendable () -> Duration
  /// Nanoseconds since 1970.
  let wall: @Sendable () -> UInt64
  let random: @Sendable () -> UInt64

  package init(
    _ sampler: TraceSampler, exporter: SpanExporter, uptime: @escaping @Sendable () -> Duration,
    wall: @escaping @Sendable () -> UInt64, random: @escaping @Sendable () -> UInt64
  ) {
    state = Mutex(State(sampler: sampler))
    self.exporter = exporter
    self.uptime = uptime
    self.wall = wall
    self.random = random
  }

  package var counts: Counts { state.withLock(\.counts) }

  /// Begins the span of a request; `nil` if it is not exported.
  ///
  /// - Parameter caller: The span in the request; `nil` if there is none.
  package func begin(_ caller: TraceContext?) -> OpenSpan? {
    let trace = caller?.trace ?? TraceID(random: random)
    let now = uptime()
    let choice = state.withLock { state in
      let choice = state.sampler.choose(
        trace, isSampledByCaller: caller?.isSampled ?? true, now: now)
      switch choice {
      case .sampled: state.counts.traced += 1
      case .limited: state.counts.limited += 1
      case .left: break
      }
      return choice
    }
    guard choice == .sampled else { return nil }
    let context = TraceContext(
      trace: trace, span: SpanID(random: random), isSampled: true, state: caller?.state ?? .none)
    return OpenSpan(context, parent: caller?.span, of: self)
  }
}

/// A span under way. Work for several requests has one in the trace of each.
package struct OpenSpan: Sendable {
  struct Branch: Sendable {
    var context: TraceContext
    var parent: SpanID?
    let room: SpanRoom
  }

  /// The span of the current task's work; `nil` if it is not exported.
  @TaskLocal package static var current: OpenSpan?

  private let branches: [Branch]
  private let start: UInt64
  private let tracer: Tracer
  private let isRoot: Bool

  fileprivate init(_ context: TraceContext, parent: SpanID?, of tracer: Tracer) {
    branches = [Branch(context: context, parent: parent, room: SpanRoom(Tracer.spansMax))]
    start = tracer.wall()
    self.tracer = tracer
    isRoot = true
  }

  private init(_ branches: [Branch], of tracer: Tracer) {
    self.branches = branches
    start = tracer.wall()
    self.tracer = tracer
    isRoot = false
  }

  /// The place of the span in the first trace.
  package var context: TraceContext { branches[0].context }

  /// Begins a span inside this one.
  package func child() -> OpenSpan {
    OpenSpan(branches.map { $0.child(random: tracer.random) }, of: tracer)
  }

  /// Begins a span inside all of these; `nil` for none.
  package static func shared(by spans: [OpenSpan]) -> OpenSpan? {
    guard let first = spans.first else { return nil }
    let branches = spans.flatMap(\.branches).map { $0.child(random: first.tracer.random) }
    return OpenSpan(branches, of: first.tracer)
  }

  /// Ends the span. A request's span ends all spans inside it: later ones are dropped.
  ///
  /// - Parameter failure: The reason why the work failed; `nil` if it did not.
  package func end(
    _ name: String, _ kind: Span.Kind = .internal, _ attributes: [SpanAttribute] = [],
    failure: String? = nil
  ) {
    let end = max(start, tracer.wall())
    var spans: [Span] = []
    for branch in branches where branch.room.reserve(isLast: isRoot) {
      spans.append(
        Span(
          context: branch.context, parent: branch.parent,
          isParentRemote: isRoot && branch.parent != nil, name: name, kind: kind, start: start,
          end: end, attributes: attributes, failure: failure))
    }
    if spans.count < branches.count { tracer.exporter.drop(branches.count - spans.count) }
    if !spans.isEmpty { tracer.exporter.add(spans) }
  }

  /// Runs work whose spans are inside this one.
  package func run<Answer>(
    isolation: isolated (any Actor)? = #isolation, _ work: () async throws -> Answer
  ) async rethrows -> Answer {
    try await Self.$current.withValue(self, operation: work, isolation: isolation)
  }
}

extension OpenSpan.Branch {
  fileprivate func child(random: () -> UInt64) -> OpenSpan.Branch {
    OpenSpan.Branch(context: context.child(random: random), parent: context.span, room: room)
  }
}

/// The number of spans that a request may still have.
final class SpanRoom: Sendable {
  private let left: Atomic<Int>

  init(_ count: Int) { left = Atomic(count - 1) }

  /// Returns whether there is room for one more. The last one always has it, and ends all.
  func reserve(isLast: Bool) -> Bool {
    guard isLast else { return left.subtract(1, ordering: .relaxed).oldValue > 0 }
    left.store(0, ordering: .relaxed)
    return true
  }
}
