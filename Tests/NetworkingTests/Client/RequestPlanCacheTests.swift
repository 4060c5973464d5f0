import FerryTestSupport
import Testing

@testable import FerryNetworking

@Suite("The cache in a request's plan", .hangLimit)
struct RequestPlanCacheTests {
  private static let transport = TransportRequest(.get, "http://host/x")
  private static let validators: TransportHeaders = ["If-None-Match": "\"a\""]
  private static let cacheable = CacheableRequest(
    endpoint: "http://host/x", options: CacheOptions(staleWhenOffline: true))
  private static let ok = NetworkResponse(status: 200, body: [1])

  private func plan(
    _ transport: TransportRequest = Self.transport, cacheable: CacheableRequest?,
    change: CacheableRequest? = nil
  ) -> RequestPlan {
    RequestPlan(
      AssembledRequest(
        transport: transport, host: "host", retry: .never, mayRepeat: true,
        cacheable: cacheable, change: change))
  }

  @Test("an answer that needs confirmation is used only after the server has confirmed it")
  func unconfirmed() {
    var asking = Self.transport
    asking.headers = Self.validators
    let notModified = NetworkResponse(status: 304)
    var plan = plan(cacheable: Self.cacheable)
    #expect(plan.next(.looked(.reachable), random: { 0 }) == .lookUp(Self.cacheable))
    #expect(
      plan.next(.found(.unconfirmed(validators: Self.validators)), random: { 0 })
        == .attempt(asking))
    #expect(
      plan.next(.answered(notModified, now: 0), random: { 0 })
        == .keep(notModified, Self.cacheable))
    #expect(plan.next(.kept(Self.ok), random: { 0 }) == .judge(Self.ok))
    #expect(plan.next(.accepted(Self.ok), random: { 0 }) == .finish(.success(Self.ok)))
  }

  @Test("an answer that needs confirmation is not used without a network, under any rule")
  func unconfirmedOffline() {
    var plan = plan(cacheable: Self.cacheable)
    _ = plan.next(.looked(.offline("no interface")), random: { 0 })
    #expect(
      plan.next(.found(.unconfirmed(validators: Self.validators)), random: { 0 })
        == .finish(.failure(NetworkError(.offline, "no interface"))))
  }

  private static let onlyCached = TransportRequest(
    .get, "http://host/x", headers: ["Cache-Control": "max-stale=60, Only-If-Cached"])
  private static let notCached = RequestPlan.Step.finish(
    .failure(NetworkError(.notCached, "no stored answer is usable")))

  @Test("an only-if-cached request never reaches the server, and has its own error")
  func onlyIfCached() {
    for answer in [
      CacheAnswer.none, .unconfirmed(validators: Self.validators),
      .stale(Self.ok, validators: Self.validators),
    ] {
      var plan = plan(Self.onlyCached, cacheable: Self.cacheable)
      _ = plan.next(.looked(.reachable), random: { 0 })
      #expect(plan.next(.found(answer), random: { 0 }) == Self.notCached)
    }
    var fresh = plan(Self.onlyCached, cacheable: Self.cacheable)
    _ = fresh.next(.looked(.reachable), random: { 0 })
    #expect(fresh.next(.found(.fresh(Self.ok)), random: { 0 }) == .judge(Self.ok))
    // Responses rejected by filters are not requested again.
    let refused = NetworkError(rejecting: Self.ok, "no")
    #expect(fresh.next(.refused(refused), random: { 0 }) == Self.notCached)
    // Without a cache, nothing is cached.
    var uncached = plan(Self.onlyCached, cacheable: nil)
    #expect(uncached.next(.looked(.reachable), random: { 0 }) == Self.notCached)
    #expect(!NetworkError(.notCached, "").isTransient)
  }

  @Test("without a network an only-if-cached request gets stale answers by its rule")
  func onlyIfCachedOffline() {
    var plan = plan(Self.onlyCached, cacheable: Self.cacheable)
    _ = plan.next(.looked(.offline("no interface")), random: { 0 })
    let found = plan.next(.found(.stale(Self.ok, validators: [:])), random: { 0 })
    #expect(found == .judge(Self.ok))
    var none = self.plan(Self.onlyCached, cacheable: Self.cacheable)
    _ = none.next(.looked(.offline("no interface")), random: { 0 })
    #expect(none.next(.found(.none), random: { 0 }) == Self.notCached)
  }

  @Test("the cache is notified of an accepted change that it was not asked about")
  func change() {
    let change = CacheableRequest(method: .post, endpoint: "http://host/x")
    let altered = NetworkResponse(status: 200, body: [2])
    var plan = plan(cacheable: nil, change: change)
    #expect(plan.next(.looked(.reachable), random: { 0 }) == .attempt(Self.transport))
    #expect(plan.next(.answered(Self.ok, now: 0), random: { 0 }) == .judge(Self.ok))
    #expect(plan.next(.accepted(altered), random: { 0 }) == .keep(Self.ok, change))
    #expect(plan.next(.kept(Self.ok), random: { 0 }) == .finish(.success(altered)))
  }

  @Test("the cache is notified of methods that change something, and of no others")
  func methods() throws {
    let assembly = RequestAssembly(configuration: NetworkConfiguration("http://host"))
    for method in [TransportMethod.post, .put, .patch, .delete] {
      let request = NetworkRequest("/x", method: method, query: [QueryItem("a", "1")])
      let assembled = try assembly.assemble(request)
      #expect(assembled.change?.method == method && assembled.cacheable == nil)
      #expect(assembled.change?.endpoint == "http://host/x")
    }
    for method in [TransportMethod.get, .head] {
      #expect(try assembly.assemble(NetworkRequest("/x", method: method)).change == nil)
    }
  }
}
