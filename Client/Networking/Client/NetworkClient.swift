/// Sends every request of an application, uploads and downloads included. You get an answer
/// accepted by the filters, or a typed error.
///
/// The client checks connectivity first. Then the cache answers if the request permits it.
/// Otherwise the client sends the request, and repeats it if a repetition may help. Cancelling the
/// calling task ends everything at once with kind `cancelled`.
///
/// ```swift
/// var configuration = NetworkConfiguration("https://api.example.org/v1")
/// configuration.alternatives["test"] = "https://test.example.org/v1"
/// let client = NetworkClient(configuration)
/// let answer = try await client.send(NetworkRequest("/tasks", query: [QueryItem("page", "2")]))
/// ```
public final class NetworkClient: Sendable {
  let transport: any Transport
  let surroundings: NetworkSurroundings
  let assembly: RequestAssembly
  let connectivity: any Connectivity
  let cache: (any ResponseCache)?
  /// The turns of requests; `nil` without a limit.
  let gate: RequestGate?

  /// Creates a client.
  ///
  /// - Parameters:
  ///   - transport: carries requests; all clients of a transport share connections.
  ///   - connectivity: checked before each attempt.
  ///   - cache: stores answers; without one every rule is `ignore`.
  public init(
    _ configuration: NetworkConfiguration, transport: any Transport = SystemTransport(),
    connectivity: any Connectivity = SystemConnectivity(), cache: (any ResponseCache)? = nil,
    surroundings: NetworkSurroundings = .system
  ) {
    assembly = RequestAssembly(configuration: configuration, random: surroundings.random)
    gate = RequestGate(configuration)
    self.transport = transport
    self.connectivity = connectivity
    self.cache = cache
    self.surroundings = surroundings
  }

  /// The address of the main base; `nil` if there is none.
  package var mainAddress: String? { assembly.configuration.main?.url }

  /// Sends a request and returns the whole response after the filters.
  ///
  /// - Parameter progress: receives progress in both directions; it starts at zero for each
  ///   attempt.
  @discardableResult
  public func send(
    _ request: NetworkRequest, progress: TransportProgressHandler? = nil
  ) async throws(NetworkError) -> NetworkResponse {
    let log = log(request)
    var plan = try plan(for: request, asksCache: true, log: log)
    do throws(NetworkError) {
      let response = try await run(&plan, for: request) {
        (request: TransportRequest) async throws(NetworkError) -> NetworkResponse in
        let permit = try await gate?.enter(request)
        defer { permit?.release() }
        do throws(TransportError) {
          let response = try await transport.send(request, progress: progress)
          return NetworkResponse(
            status: response.status, headers: response.headers, body: response.body)
        } catch {
          throw NetworkError(error)
        }
      }
      log?.end(plan, response)
      return response
    } catch {
      log?.end(plan, error)
      throw error
    }
  }

  /// Sends a request and returns as soon as the filters have accepted the response's head.
  ///
  /// The request's policy repeats failures before this point; the caller handles a broken body. No
  /// cache is asked, so `only-if-cached` ends in ``NetworkError/Kind/notCached`` here.
  public func stream(
    _ request: NetworkRequest, progress: TransportProgressHandler? = nil
  ) async throws(NetworkError) -> TransportStream {
    let log = log(request)
    var plan = try plan(for: request, asksCache: false, log: log)
    do throws(NetworkError) {
      let stream = try await open(&plan, from: plan.start, for: request, progress: progress)
      guard let log else { return stream }
      let (plan, status) = (plan, stream.status)
      let body = stream.body.observed(
        part: { log.received($0) },
        end: { error in
          if let error {
            log.end(plan, NetworkError(error))
          } else {
            log.end(plan, NetworkResponse(status: status))
          }
        })
      return TransportStream(status: status, headers: stream.headers, body: body)
    } catch {
      log?.end(plan, error)
      throw error
    }
  }
}
