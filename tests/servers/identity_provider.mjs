// An identity provider on this machine: node identity_provider.mjs FOLDER PORT ADDRESS KEYS
// FOLDER has the package; ADDRESS is of the server that people sign in to; KEYS is a file of private keys (JWKS).
import { readFileSync } from "node:fs";

const [folder, port, address, keys] = process.argv.slice(2);
const { default: Provider } = await import(`${folder}/node_modules/oidc-provider/lib/index.js`);
const GROUPS = { ann: ["sales", "unknown"], bob: ["sales", "it"], eve: [], nightly: ["sales"] };
const client = (id) => ({
  client_id: id,
  client_secret: `secret-of-${id}`,
  redirect_uris: [`${address}/login/callback`],
  post_logout_redirect_uris: [`${address}/`],
});

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [client("decisor"), client("other")],
  jwks: JSON.parse(readFileSync(keys, "utf-8")),
  claims: { openid: ["sub", "groups"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["of tests alone"] },
  // One is asked for a name and any password, and may say no.
  features: { devInteractions: { enabled: true } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: GROUPS[id] ?? [] }) }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
