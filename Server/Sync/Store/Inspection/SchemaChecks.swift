import FerryProtocol

extension SQLiteStore {
  package func checkSchema(
    _ document: SpaceSchema, of space: Int64, now: Int64, consent: SchemaConsent
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    let work = SchemaWork(
      document, now: now, consent: consent, onlyChecks: true, random: makeRandom())
    return try await run(work, in: space)
  }
}

extension PostgresStore {
  package func checkSchema(
    _ document: SpaceSchema, of space: Int64, now: Int64, consent: SchemaConsent
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    var change = PostgresSchemaChange(
      space: space, now: now, consent: consent, timelines: timelines)
    change.onlyChecks = true
    let random = makeRandom()
    return try await run { [change] in try change.apply(document, random: random, on: $0).answer }
  }
}
