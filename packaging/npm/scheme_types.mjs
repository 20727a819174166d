// The types of all schemes, from the library's own list: one interface per scheme and per scaling of rope.

const types = { integer: 'number', number: 'number', boolean: 'boolean', integers: 'readonly number[]', numbers: 'readonly number[]',
                'optional number': 'number | null', scaling: 'Scaling' };

const title = (name) => name.split('-').map((word) => word[0].toUpperCase() + word.slice(1)).join('');
export const schemeType = (name) => `${name === 'none' ? 'NoPosition' : title(name)}Scheme`;
export const scalingType = (name) => `${name === 'none' ? 'No' : title(name)}Scaling`;

function typeOf(field) {
  if (field.type === 'choice') return field.choices.map((choice) => `'${choice}'`).join(' | ');
  if (!types[field.type]) throw new Error(`a field of type ${field.type} has no type in TypeScript`);
  return types[field.type];
}

// A default that fits on the line; lists of trained numbers do not.
function defaultOf(field) {
  const text = JSON.stringify(field.default);
  return text.length > 40 ? '' : ` Default: ${text}.`;
}

function interfaceOf(type, tag, entry) {
  const used = entry.used_by ? `\n * Used by: ${entry.used_by}.` : '';
  const fields = entry.fields.map((field) => `  /** ${field.help}.${defaultOf(field)} */\n  ${field.name}?: ${typeOf(field)};\n`).join('');
  return `/**\n * ${entry.formula}.${used}\n */\nexport interface ${type} {\n  ${tag}: '${entry.name}';\n${fields}}\n`;
}

/** `listed`: {schemes, scalings}, as the library lists them. */
export function schemeTypes(listed) {
  const scalings = listed.scalings.map((one) => interfaceOf(scalingType(one.name), 'type', one));
  const schemes = listed.schemes.map((one) => interfaceOf(schemeType(one.name), 'scheme', one));
  return [
    "// Every scheme and every scaling of rope. Made by packaging/npm from the library's own list.\n",
    ...scalings, ...schemes,
    `/** How rope is extended beyond its trained length. */\nexport type Scaling =\n${listed.scalings.map((one) => `  | ${scalingType(one.name)}`).join('\n')};\n`,
    `/** A scheme; fields that are left out have their defaults. */\nexport type Scheme =\n${listed.schemes.map((one) => `  | ${schemeType(one.name)}`).join('\n')};\n`,
  ].join('\n');
}
